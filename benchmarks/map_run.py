"""A run whose map is as large as the page is built for: ``python -m benchmarks.map_run DIR``.

Two modalities of clustered items that come closer from snapshot to snapshot, with captions and small
pictures, written by the logger.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.support.synthetic import thumbnail
from uwml_core.runlog.writer import RunLogger

SHAPES = ("bell", "boat", "cup", "door", "fern", "gate", "harp", "kite", "lamp", "mill", "nest", "oar")
SHADES = ("amber", "blue", "coral", "green", "grey", "ivory", "pink", "rust", "teal", "violet")
STEPS = 100


@dataclass(frozen=True, kw_only=True)
class Size:
    """How large a map is: ``items`` points of each modality in every snapshot."""

    items: int = 20_000
    snapshots: int = 20
    dim: int = 64


def make_map_run(root: Path, run_id: str = "map", size: Size | None = None) -> Path:
    """Write the run, unless it is there as a whole already; returns its folder."""
    size = size or Size()
    folder = root / run_id
    if (folder / ".complete").exists():
        return folder
    random = np.random.default_rng(0)
    items = np.arange(size.items)
    labels = np.arange(size.items, dtype=np.int32)
    shade = random.integers(len(SHADES), size=size.items)
    shape = items % len(SHAPES)
    captions = [
        [f"a {SHADES[a]} {SHAPES[b]} on shelf {k % 97}"] for k, a, b in zip(items, shade, shape, strict=True)
    ]
    with RunLogger(root, run_id, total_steps=STEPS * size.snapshots, seed=0) as log:
        log.log_items(
            item_keys=[f"item-{k:05d}" for k in items], labels=labels.tolist(), captions=captions,
            groups=[SHAPES[b] for b in shape], thumbnails=(thumbnail(int(k)) for k in items),
        )  # fmt: skip
        splits = np.where(items % 5 == 4, "val", "train").tolist()
        for epoch, vectors in enumerate(_epochs(size, shape, shade, random)):
            log.log_snapshot(
                step=STEPS * (epoch + 1) - 1, epoch=epoch, embeddings=vectors, item_ids=items, labels=labels,
                splits=splits,
            )  # fmt: skip
            # what waits for the disk is bounded, and nothing trains here between two snapshots
            log.flush()
    (folder / ".complete").touch()
    return folder


def _epochs(
    size: Size, shape: NDArray[np.int64], shade: NDArray[np.int64], random: np.random.Generator
) -> Iterator[dict[str, NDArray[np.float32]]]:
    shapes = random.normal(size=(len(SHAPES), size.dim))
    shades = random.normal(size=(len(SHADES), size.dim))
    own = random.normal(size=(size.items, size.dim))
    concept = shapes[shape] + 0.5 * shades[shade] + 0.6 * own
    gap = random.normal(size=size.dim)
    start = {name: random.normal(size=own.shape) for name in ("image", "text")}
    for learned in np.linspace(0.2, 1.0, size.snapshots):
        made = {}
        for side, (name, noise) in zip((-1.0, 1.0), start.items(), strict=True):
            wide = learned * concept + (1.1 - learned) * noise + side * (1.2 - learned) * gap / 2
            made[name] = (wide / np.linalg.norm(wide, axis=1, keepdims=True)).astype(np.float32)
        yield made


def main() -> None:
    """Write the run and say where."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="logs folder")
    parser.add_argument("--items", type=int, default=Size.items)
    parser.add_argument("--snapshots", type=int, default=Size.snapshots)
    given = parser.parse_args()
    print(make_map_run(given.folder, size=Size(items=given.items, snapshots=given.snapshots)))


if __name__ == "__main__":
    main()
