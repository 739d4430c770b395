"""Make the README's pictures: open each page on the sample runs in Chromium, light and dark.

usage: python docs/screenshots.py [--logs FOLDER] [--run RUN] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from PIL import Image  # noqa: E402

from tests.support.browser import served, visit  # noqa: E402

PAGES = ("runs", "training", "weight_curve", "modal_balance", "hard_negatives", "embedding_map")
# the page that comes without a name in its address
HOME = "runs"


def shoot(logs: Path, run: str, out: Path) -> None:
    """Take a picture of each page in both themes."""
    out.mkdir(parents=True, exist_ok=True)
    with served(logs, read_only=True) as url:
        for scheme in ("light", "dark"):
            with visit(scheme=scheme) as seen:
                for name in PAGES:
                    seen.open(f"{url}/{'' if name == HOME else name}?run={run}")
                    # the last chart may still glide to its place
                    seen.page.wait_for_timeout(2000)
                    seen.settle()
                    file = out / f"{name}-{scheme}.png"
                    seen.page.screenshot(path=str(file))
                    shrink(file)
                    print(file)


def shrink(file: Path) -> None:
    """Keep the colours that a page of lines and text needs: a third of the bytes in the repository."""
    with Image.open(file) as picture:
        few = picture.convert("RGB").quantize(192, dither=Image.Dither.NONE)
    few.save(file, optimize=True)


def main() -> None:
    """Read the options and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=Path, default=ROOT / "logs", help="folder of runs to show")
    parser.add_argument("--run", default="sample-uwml", help="run to show")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images")
    args = parser.parse_args()
    shoot(args.logs, args.run, args.out)


if __name__ == "__main__":
    main()
