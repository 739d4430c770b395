"""Make the README's pictures: train the demo once, open each page in Chromium, light and dark.

usage: python docs/screenshots.py [--logs FOLDER] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.browser import served, visit  # noqa: E402

PAGES = {"runs": "", "training": "training", "weight_curve": "weight_curve"}


def train(logs: Path) -> None:
    """Train the demo and its InfoNCE baseline into a folder of runs."""
    for preset in ("infonce", "uwml"):
        command = [sys.executable, "-m", "uwml_core", "train", "--preset", preset]
        command += ["--set", f"run.root={logs}", "--set", f"run.name={preset}"]
        subprocess.run(command, check=True, cwd=ROOT)


def shoot(logs: Path, out: Path) -> None:
    """Take a picture of each page in both themes."""
    out.mkdir(parents=True, exist_ok=True)
    with served(logs, read_only=True) as url:
        for scheme in ("light", "dark"):
            with visit(scheme=scheme) as seen:
                for name, path in PAGES.items():
                    seen.open(f"{url}/{path}")
                    seen.page.wait_for_timeout(2000)
                    seen.settle()
                    file = out / f"{name}-{scheme}.png"
                    seen.page.screenshot(path=str(file))
                    print(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=Path, help="folder of runs to show (default: trains one)")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images")
    args = parser.parse_args()
    if args.logs:
        shoot(args.logs, args.out)
        return
    with tempfile.TemporaryDirectory() as folder:
        train(Path(folder))
        shoot(Path(folder), args.out)


if __name__ == "__main__":
    main()
