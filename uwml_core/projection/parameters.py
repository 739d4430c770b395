"""How to lay snapshots out, and the keys under which layouts are kept."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from uwml_core.runlog.listing import Part
from uwml_core.runlog.reader import Run

METHODS = ("umap", "pca")
METRICS = ("cosine", "euclidean")
NEIGHBORS = (2, 200)
ITEMS = (5, 1_000_000)
# Part of every key: raise it when the same input would give another layout.
_ALGORITHM = 2


@dataclass(frozen=True, kw_only=True)
class ProjectionParameters:
    """Parameters of a layout; for ``pca`` the others have no meaning and keep their defaults.

    Attributes:
        method: ``umap`` or ``pca``.
        neighbors: neighbors per point that UMAP keeps together, 2 to 200.
        min_dist: least distance of points in the layout, 0 to 1, in the layout's unit.
        metric: ``cosine`` or ``euclidean``; of unit vectors both have the same neighbors.
        items: most items of a snapshot that are laid out, 5 to 1,000,000; of more a stratified sample is, the
            same items in every snapshot.
        seed: of the sample and of UMAP's sampling; the same seed gives the same layout.

    Raises:
        ValueError: naming the parameter, its value and what is expected.

    Example:
        >>> ProjectionParameters(neighbors=1)
        Traceback (most recent call last):
        ValueError: neighbors=1 is outside 2 to 200
    """

    method: str = "umap"
    neighbors: int = 15
    min_dist: float = 0.1
    metric: str = "cosine"
    items: int = 20_000
    seed: int = 42

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"method={self.method!r} is unknown; choose one of {', '.join(METHODS)}")
        if self.metric not in METRICS:
            raise ValueError(f"metric={self.metric!r} is unknown; choose one of {', '.join(METRICS)}")
        if not NEIGHBORS[0] <= self.neighbors <= NEIGHBORS[1]:
            raise ValueError(f"neighbors={self.neighbors} is outside {NEIGHBORS[0]} to {NEIGHBORS[1]}")
        if not ITEMS[0] <= self.items <= ITEMS[1]:
            raise ValueError(f"items={self.items} is outside {ITEMS[0]} to {ITEMS[1]}")
        if not 0.0 <= self.min_dist <= 1.0:
            raise ValueError(f"min_dist={self.min_dist} is outside 0 to 1")
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed={self.seed} is outside 0 to 4294967295")

    def to_dict(self) -> dict[str, Any]:
        """The parameters that the method uses."""
        values = dataclasses.asdict(self)
        return values if self.method == "umap" else {"method": self.method}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Inverse of ``to_dict``."""
        return cls(**values)


def chain_keys(run: Run, parameters: ProjectionParameters) -> list[str]:
    """Key of the layout after each snapshot file, the last one being that of the whole run.

    A key digests the parameters and the content of the files up to there, so a run that grew continues
    from the layout of what it was, and one that changed gets a new key. Copies of a run share theirs.

    Args:
        run: the run; without snapshots it has no key.
        parameters: how it is laid out.

    Returns:
        One key of 32 hex digits per snapshot file, in order.
    """
    text = json.dumps({"algorithm": _ALGORITHM, **parameters.to_dict()}, sort_keys=True)
    key = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    keys = []
    for part in sorted(run.parts("snapshots"), key=lambda part: (part.first, part.segment)):
        key = hashlib.blake2b(f"{key} {_content(part)}".encode(), digest_size=16).hexdigest()
        keys.append(key)
    return keys


def _content(part: Part) -> str:
    return _digest_of_file(str(part.path), part.key)


@functools.lru_cache(maxsize=4096)
def _digest_of_file(path: str, stamp: object) -> str:
    """Digest of a file, computed again only when its size or time changed."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()
