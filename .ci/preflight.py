"""Say in one line what is missing before an install starts; runs on any Python 3."""

import os
import shutil
import sys


def stop(message):
    sys.stderr.write("uwml: error: " + message + "\n")
    sys.exit(1)


def check_python():
    if sys.version_info < (3, 11):
        version = ".".join(str(part) for part in sys.version_info[:3])
        stop("Python 3.11 or newer is needed, this is " + version + "; try `make PYTHON=python3.12 ...`")
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        stop("Python's venv module is missing; on Debian and Ubuntu: sudo apt-get install python3-venv")


def check_disk(folder, gib):
    free = shutil.disk_usage(folder).free / 2**30
    if free < gib:
        stop("%s has %.1f GiB free, the installation needs %.0f GiB; free some space" % (folder, free, gib))


def check_chromium():
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    known = os.environ.get("UWML_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    mac = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
    if not (known and os.path.exists(known)) and not os.path.exists(mac):
        stop(
            "no Chromium found for the browser tests; on Debian and Ubuntu: sudo apt-get install chromium, "
            "on macOS: brew install --cask google-chrome; or set UWML_CHROMIUM to its path"
        )


if __name__ == "__main__":
    wanted = sys.argv[1:]
    if "install" in wanted:
        check_python()
        check_disk(os.getcwd(), float(os.environ.get("UWML_NEEDED_GIB", "3")))
    if "chromium" in wanted:
        check_chromium()
