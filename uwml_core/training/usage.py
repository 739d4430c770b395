"""How fast training went since it was last asked, and the most memory that it took."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

import torch

_MIB = 2**20


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What some steps took.

    Attributes:
        pairs: seen by all processes.
        seconds: of steps, evaluations left out.
        peak_memory_bytes: most memory of this process so far, its workers left out; None where unknown.
        peak_gpu_memory_bytes: most memory that tensors took on its GPU so far; None without one.
    """

    pairs: int
    seconds: float
    peak_memory_bytes: int | None
    peak_gpu_memory_bytes: int | None

    @property
    def pairs_per_second(self) -> float:
        """Pairs of all processes in a second."""
        return self.pairs / self.seconds if self.seconds > 0 else 0.0

    def sentence(self) -> str:
        """The same in words.

        Example:
            >>> usage = Usage(pairs=900, seconds=3.0, peak_memory_bytes=2**29, peak_gpu_memory_bytes=None)
            >>> usage.sentence()
            '300 pairs per second in 3.0 s of steps, peak memory 512 MiB'
        """
        said = f"{self.pairs_per_second:,.0f} pairs per second in {self.seconds:.1f} s of steps"
        for name, size in (("", self.peak_memory_bytes), ("GPU ", self.peak_gpu_memory_bytes)):
            if size is not None:
                said += f", peak {name}memory {size / _MIB:,.0f} MiB"
        return said


class UsageMeter:
    """Counts pairs and time between two reports.

    Args:
        device: where the process computes.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.begin()

    def begin(self) -> None:
        """Count from here on."""
        self._pairs, self._began = 0, time.perf_counter()

    def count(self, pairs: int) -> None:
        """Add the pairs of a step."""
        self._pairs += pairs

    def report(self) -> Usage:
        """What was counted since ``begin``."""
        on_gpu = self._device.type == "cuda"
        return Usage(
            pairs=self._pairs,
            seconds=time.perf_counter() - self._began,
            peak_memory_bytes=peak_memory_bytes(),
            peak_gpu_memory_bytes=torch.cuda.max_memory_allocated(self._device) if on_gpu else None,
        )


def peak_memory_bytes() -> int | None:
    """Most memory that this process has held so far; None where the system does not say."""
    if sys.platform == "win32":
        return None
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
