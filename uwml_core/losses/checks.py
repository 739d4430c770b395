"""What the loss refuses, each as one sentence that names the argument, the rows and what is expected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from reprlib import repr as short
from typing import Any, NoReturn

import torch


def check_features(image: Any, text: Any) -> None:
    """Refuse features that are not two floating matrices of one shape, dtype and device.

    Raises:
        ValueError: naming the argument, what it is and what is expected.
    """
    for name, value in (("image_features", image), ("text_features", text)):
        if not isinstance(value, torch.Tensor):
            raise ValueError(f"{name} is a {type(value).__name__}; expected a tensor [batch, dim]")
        if not value.is_floating_point():
            raise ValueError(f"{name} has dtype {value.dtype}; expected a floating dtype")
        check_dense(name, value)
        if value.ndim != 2 or 0 in value.shape:
            raise ValueError(f"{name} has shape {tuple(value.shape)}; expected [batch, dim], both at least 1")
    for what in ("shape", "dtype", "device"):
        first, second = getattr(image, what), getattr(text, what)
        if first != second:
            shown = (tuple(first), tuple(second)) if what == "shape" else (first, second)
            raise ValueError(
                f"text_features has {what} {shown[1]} but image_features has {shown[0]}; "
                f"expected the same {what}, row k of both being one true pair"
            )


def check_dense(name: str, value: torch.Tensor) -> None:
    """Refuse a tensor whose entries do not all lie in memory.

    Raises:
        ValueError: naming the argument.
    """
    if value.is_meta or value.layout != torch.strided:
        what = "on the meta device" if value.is_meta else f"of layout {value.layout}"
        raise ValueError(f"{name} is a tensor {what}; expected a dense one with values")


def check_labels(labels: Any, batch: int, device: torch.device) -> torch.Tensor:
    """Labels as an int64 tensor ``[batch]`` on the features' device.

    Raises:
        ValueError: if they are not whole numbers or not one per pair.
    """
    try:
        values = torch.as_tensor(labels)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"labels={short(labels)} cannot be read as int64; expected whole numbers, one per pair"
        ) from error
    check_dense("labels", values)
    if values.is_floating_point() or values.is_complex() or values.dtype == torch.bool:
        raise ValueError(f"labels has dtype {values.dtype}; expected whole numbers, one per pair")
    if values.shape != (batch,):
        raise ValueError(f"labels has shape {tuple(values.shape)}; expected ({batch},), one label per pair")
    # A copy: the diagnostics keep it, and loaders reuse their buffers.
    return values.to(device=device, dtype=torch.int64, copy=True)


def check_item_ids(item_ids: Any, batch: int) -> None:
    """Refuse item ids that are not one per pair.

    Raises:
        ValueError: naming both lengths.
    """
    if item_ids is None:
        return
    try:
        length = len(item_ids)
    except TypeError as error:
        raise ValueError(
            f"item_ids={short(item_ids)} has no length; expected {batch}, one id per pair"
        ) from error
    if length != batch:
        raise ValueError(f"item_ids has length {length}; expected {batch}, one id per pair")


def check_memory(dim: int, kept: int | None) -> None:
    """Refuse features of another size than those in the memory queue.

    Raises:
        ValueError: naming both sizes.
    """
    if kept is not None and dim != kept:
        raise ValueError(
            f"image_features has dim {dim}, but the memory queue holds embeddings of dim {kept}; "
            "expected the same, or reset_memory() before"
        )


def check_progress(progress: Any) -> float | None:
    """Progress as a float in [0, 1], or None.

    Raises:
        ValueError: if it is not a number in [0, 1].
    """
    if progress is None:
        return None
    try:
        value = float(progress)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise ValueError(
            f"progress={short(progress)} is not a number; expected optimizer steps done / total, in [0, 1]"
        ) from error
    if not 0.0 <= value <= 1.0:
        raise ValueError(
            f"progress={value!r} is out of range; expected optimizer steps done / total, in [0, 1]"
        )
    return value


def check_logit(name: str, value: Any) -> None:
    """Refuse a given ``logit_scale`` or ``logit_bias`` that is not one number.

    Raises:
        ValueError: naming the argument; also for a plain number out of range.
    """
    if value is None:
        return
    if isinstance(value, torch.Tensor):
        if value.numel() != 1 or not value.is_floating_point():
            raise ValueError(
                f"{name} has shape {tuple(value.shape)} and dtype {value.dtype}; expected one floating number"
            )
        check_dense(name, value)
        return
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(
            f"{name}={short(value)} is a {type(value).__name__}; expected a number or a scalar tensor"
        )
    check_logit_value(name, float(value))


def check_logit_value(name: str, value: float) -> None:
    """Refuse a scale that is not positive and finite, or a bias that is not finite.

    Raises:
        ValueError: naming the argument and the value.
    """
    if name == "logit_scale" and not (value > 0.0 and math.isfinite(value)):
        raise ValueError(f"logit_scale={value!r} is out of range; expected 1 / temperature, finite and > 0")
    if name == "logit_bias" and not math.isfinite(value):
        raise ValueError(f"logit_bias={value!r} is not finite; expected a finite number")


def check_rows(image: torch.Tensor, text: torch.Tensor) -> None:
    """Refuse rows that are not finite or have zero length.

    Raises:
        ValueError: naming the argument, the first five such rows and what is expected.
    """
    for name, value in (("image_features", image), ("text_features", text)):
        finite = value.isfinite().all(1)
        if not finite.all():
            raise ValueError(f"{name} is not finite in {rows_text(~finite)}; expected finite numbers only")
        zero = (value == 0).all(1)
        if zero.any():
            raise ValueError(f"{name} is all zero in {rows_text(zero)}; expected rows with a direction")


def refuse_without_negatives(labels: Sequence[int], false_negative_margin: float | None) -> NoReturn:
    """Say why no anchor of a batch has a negative and what to do.

    Raises:
        ValueError: always.
    """
    if len(set(labels)) > 1:
        raise ValueError(
            f"false_negative_margin={false_negative_margin!r} leaves no anchor of this batch a negative; "
            "expected a larger one"
        )
    if len(labels) == 1:
        raise ValueError(
            "image_features has 1 row, so no anchor has a negative; expected a batch of 2 or more"
        )
    raise ValueError(
        f"labels are all {labels[0]} in rows 0 to {len(labels) - 1}, so no anchor has a negative; "
        "expected at least two different labels in a batch"
    )


def rows_text(bad: torch.Tensor) -> str:
    """The first five row numbers of a bool mask, in words.

    Example:
        >>> rows_text(torch.tensor([True, False, True]))
        'rows 0, 2'
    """
    rows = bad.nonzero()[:, 0].tolist()
    shown = ", ".join(str(row) for row in rows[:5])
    more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
    return f"row{'s' if len(rows) > 1 else ''} {shown}{more}"
