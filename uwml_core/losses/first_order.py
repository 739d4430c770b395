"""Backward passes written by hand: they give gradients, but no gradients of gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch


def first_order(instead: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Refuse a backward pass that is itself to be differentiated, as ``create_graph=True`` asks.

    ``torch.autograd.function.once_differentiable`` stays silent where what flows in is a constant, so that a
    penalty on the gradient would train nothing.

    Args:
        instead: what takes the place of what it decorates, as the end of a sentence.
    """

    def decorated(backward: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(backward)
        def once(*arguments: Any) -> Any:
            # while a backward pass runs, this is whether it is recorded
            if torch.is_grad_enabled():
                raise RuntimeError(
                    f"create_graph=True: UWMLLoss has no second-order gradients here; {instead}"
                )
            return backward(*arguments)

        return once

    return decorated
