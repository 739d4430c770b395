"""``uwml diagnose-embeddings``: make a run from a finished model's embeddings or similarities."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uwml_core.data.embedded import EmbeddedPairs
    from uwml_core.training.finished import Diagnosis

HELP = "make a run from a finished model: retrieval, nearest wrong candidates and map without training"

_METRICS = ("R@1", "R@5", "R@10", "median_rank", "mean_rank")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--images", type=Path, metavar="NPY", help="embeddings [images, dim] of the images")
    parser.add_argument("--texts", type=Path, metavar="NPY", help="embeddings [texts, dim] of the texts")
    parser.add_argument(
        "--similarities", type=Path, metavar="NPY", help="instead of both: [images, texts]; gives no map"
    )
    parser.add_argument(
        "--pairs",
        type=Path,
        metavar="FILE",
        help="CSV with the columns image (row of the image of each text row), optionally text, split, group "
        "and picture; or a .npy of image rows (default: row i belongs to row i)",
    )
    parser.add_argument(
        "--captions",
        type=Path,
        metavar="FILE",
        help="a caption per text row: lines, or a CSV's column caption",
    )
    parser.add_argument(
        "--labels", type=Path, metavar="NPY", help="a number per image; equal ones are never wrong answers"
    )
    parser.add_argument(
        "--pictures", type=Path, metavar="DIR", help="pictures 0.jpg, 1.png, ..., or as --pairs names them"
    )
    parser.add_argument(
        "--modalities",
        nargs=2,
        default=("image", "text"),
        metavar="NAME",
        help="what is compared, such as video text (default: image text)",
    )
    parser.add_argument("--logs", type=Path, default=Path("logs"), metavar="DIR", help="default: logs")
    parser.add_argument("--run-id", metavar="ID", help="folder of the run (default: made from the time)")
    parser.add_argument("--name", metavar="TEXT", help="what the run is called in the app")


def run(args: argparse.Namespace) -> int:
    """Read, check, evaluate and write; prints the metrics and the run's folder. Returns the exit code."""
    # torch takes seconds to load: not before the words of the command line are known to be right
    from uwml_core.data.embedded import read_embedded_pairs
    from uwml_core.training.finished import diagnose, read_model

    model, shape = read_model(args.images, args.texts, args.similarities)
    files = {name: getattr(args, name) for name in ("pairs", "captions", "labels")}
    pairs = read_embedded_pairs(*shape, **files)
    thumbnails = _thumbnails(args.pictures, pairs)
    made = diagnose(
        model,
        pairs,
        root=args.logs,
        run_id=args.run_id,
        name=args.name,
        modalities=tuple(args.modalities),
        thumbnails=thumbnails,
        described=_described(args),
    )
    _tell(made, pairs, thumbnails, has_map=args.similarities is None)
    return 0


def _thumbnails(folder: Path | None, pairs: EmbeddedPairs) -> list[bytes | None] | None:
    from uwml_core.data.picture_folder import read_thumbnails

    return None if folder is None else read_thumbnails(folder, pairs.pictures, len(pairs.item_ids))


def _described(args: argparse.Namespace) -> dict[str, Any]:
    # names alone: where they lie is nobody else's business
    names = ("images", "texts", "similarities", "pairs", "captions", "labels", "pictures")
    return {name: getattr(args, name).name for name in names if getattr(args, name) is not None}


def _tell(
    made: Diagnosis, pairs: EmbeddedPairs, thumbnails: list[bytes | None] | None, *, has_map: bool
) -> None:
    for split, metrics in made.metrics.items():
        print(f"{split:12}" + "".join(f"{name:>13}" for name in (*_METRICS, "tied_share", "n")))
        for direction in dict.fromkeys(metric[0] for metric in metrics if metric[0] is not None):
            rows = {metric[1]: metric for metric in metrics if metric[0] == direction}
            values = "".join(f"{rows[name][2]:13.2f}" for name in _METRICS)
            print(f"{direction:12}{values}{rows['R@1'][4]:13.4f}{rows['R@1'][3]:13}")
        print(f"rsum {metrics[-1][2]:.2f}")
    if pairs.unused_texts:
        print(f"{pairs.unused_texts} text rows belong to no image and are left out")
    if thumbnails is not None and None in thumbnails:
        print(f"{thumbnails.count(None)} of {len(thumbnails)} pictures are missing or cannot be decoded")
    if not has_map:
        print(
            "Similarities alone give no embedding map and no gap measures: pass --images and --texts for them"
        )
    print(made.path)
