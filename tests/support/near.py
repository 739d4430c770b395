"""A comparison that a NaN cannot pass."""

from __future__ import annotations

from typing import Any

import numpy as np


def assert_near(got: Any, want: Any, what: str, *, relative: float, absolute: float) -> None:
    """Fail unless every number is the wanted one, and NaN where None is wanted and nowhere else."""
    numbers = np.asarray(got.detach() if hasattr(got, "detach") else got, dtype=np.float64)
    wanted = np.asarray(want, dtype=object)
    missing = np.equal(wanted, None)
    assert numbers.shape == wanted.shape, f"{what}: {numbers.shape} instead of {wanted.shape}"
    assert (np.isnan(numbers) == missing).all(), f"{what}: {numbers} instead of {wanted}"
    there, target = numbers[~missing], wanted[~missing].astype(np.float64)
    with np.errstate(invalid="ignore"):
        # written so that a NaN or an infinity on either side fails
        within = np.abs(there - target) <= np.where(
            np.isfinite(target), absolute + relative * np.abs(target), -1
        )
    assert within.all(), f"{what}: {there} instead of {target}"


def assert_gradient(got: Any, want: np.ndarray, what: str, *, relative: float = 1e-6) -> None:
    """Fail unless a gradient is the wanted one up to a share of the largest wanted entry."""
    largest = float(np.max(np.abs(want)))
    # below the absolute bound a difference quotient is rounding
    assert_near(got, want, what, relative=0.0, absolute=relative * largest + 1e-11)
