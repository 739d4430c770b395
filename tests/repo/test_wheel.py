"""The built package: what is in it, and that it works where no checkout is."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath

import pytest

from tests.support.browser import free_port, visit
from uwml_core import __version__, list_runs
from uwml_core.runlog.sample_runs import add_sample_runs

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
APP = "uwml_core/_app/"
CARRIED = ("app.py", "pages/", "static/", ".streamlit/", "logs/")
SAMPLES = ["sample-collapse", "sample-infonce", "sample-uwml", "sample-video"]
WHEEL_LIMIT_BYTES = 30_000_000
# catalogues are shipped compiled
SOURCES_ONLY = (".po", ".pot", ".gitkeep")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of the files that belong to the repository."""
    if not (ROOT / ".git").exists():
        pytest.skip("what belongs to the repository is known in a clone only")
    folder = tmp_path_factory.mktemp("tree")
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def belonging(tree: Path) -> set[str]:
    """Names of those files."""
    return {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def built(tree: Path, belonging: set[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the source distribution and the wheel of that tree, littered by somebody's work."""
    for litter in (
        "logs/my-run/run.json",
        "logs/_items/secret.parquet",
        "logs/sample-uwml/run.lock",
        "logs/sample-uwml/checkpoint/last.pt",
        "logs/sample-uwml/notes/1.json",
        "logs/sample-uwml/steps/.part-0001-000000000-000000001.parquet",
        "static/plotly.min.js",
        "uwml_core/__pycache__/old.cpython-311.pyc",
    ):
        assert litter not in belonging
        (tree / litter).parent.mkdir(parents=True, exist_ok=True)
        (tree / litter).write_text("{}")
    output = tmp_path_factory.mktemp("built")
    build(tree, output, "build_sdist", "build_wheel")
    return output


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked as an installation lays it out."""
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel(built)) as packed:
        packed.extractall(folder)
    return folder


def build(tree: Path, output: Path, *hooks: str) -> None:
    """Call a build backend's hooks as pip does, but without an environment of their own."""
    script = "import sys; from setuptools import build_meta; folder, *hooks = sys.argv[1:]\n"
    script += "for name in hooks: getattr(build_meta, name)(folder)"
    command = [sys.executable, "-c", script, str(output), *hooks]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def wheel(folder: Path) -> Path:
    (path,) = folder.glob("*.whl")
    return path


def contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as packed:
        found = {name: packed.read(name) for name in packed.namelist() if not name.endswith("/")}
    # the record lists what is there, in the order of the folders on disk
    return {name: b"" if name.endswith("/RECORD") else content for name, content in found.items()}


def listing(folder: Path) -> set[str]:
    """Files, but for those that Python compiles."""
    return {str(path) for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"}


def test_wheel_holds_the_package_the_app_and_the_sample_runs_and_nothing_else(tree, belonging, built):
    found = contents(wheel(built))
    own = {name for name in belonging if name.startswith("uwml_core/") and not name.endswith(SOURCES_ONLY)}
    carried = {name for name in belonging if name.startswith(CARRIED) and not name.endswith(SOURCES_ONLY)}
    assert len(own) > 200
    assert len(carried) > 90
    assert {name for name in found if ".dist-info/" not in name} == own | {APP + name for name in carried}
    for name in own:
        assert found[name] == (tree / name).read_bytes(), name
    for name in carried:
        assert found[APP + name] == (tree / name).read_bytes(), name
    assert wheel(built).stat().st_size < WHEEL_LIMIT_BYTES


def test_wheel_carries_the_licences_and_its_version(built):
    found = contents(wheel(built))
    info = f"uwml_lens-{__version__}.dist-info"
    licences = {name for name in found if name.startswith(f"{info}/licenses/")}
    wanted = ("LICENSE", "NOTICE", "docs/licences/Apache-2.0.txt")
    assert licences == {f"{info}/licenses/{name}" for name in wanted}
    assert f"\nVersion: {__version__}\n" in found[f"{info}/METADATA"].decode()


def test_source_distribution_makes_the_same_wheel(built, tmp_path):
    (source,) = built.glob("*.tar.gz")
    with tarfile.open(source) as packed:
        names = [PurePosixPath(name).parts[1:2] for name in packed.getnames()]
        packed.extractall(tmp_path, filter="data")
    assert not {("tests",), ("benchmarks",)} & set(names)
    (tree,) = tmp_path.iterdir()
    build(tree, tmp_path, "build_wheel")
    assert contents(wheel(tmp_path)) == contents(wheel(built))


@pytest.fixture
def start(installed: Path, tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Function that starts Python with the installed package, in an empty folder of a new user."""
    folder = tmp_path / "empty"
    folder.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("UWML_", "STREAMLIT_"))}
    environment = {**kept, "PYTHONPATH": str(installed), "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}

    def start_(*words: str) -> subprocess.Popen[str]:
        command = [sys.executable, *words]
        with (tmp_path / "errors.txt").open("w") as errors:
            return subprocess.Popen(
                command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
            )

    return start_


@pytest.fixture
def uwml(start: Callable[..., subprocess.Popen[str]]) -> Callable[..., subprocess.Popen[str]]:
    """Function that starts a command of the installed package there."""
    return partial(start, "-m", "uwml_core")


def output_of(process: subprocess.Popen[str]) -> str:
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return out


def test_installed_package_finds_the_app_inside_of_itself(start, installed):
    script = "from uwml_core.installation import app_folder; print(app_folder())"
    assert output_of(start("-c", script)).strip() == str(installed / "uwml_core" / "_app")


def test_version_losses_and_bundle_need_no_checkout(uwml, installed, tmp_path):
    before = listing(installed)
    assert output_of(uwml("--version")) == f"uwml {__version__}\n"
    assert output_of(uwml("losses")).startswith("uwml (")
    run = installed / APP / "logs" / "sample-uwml"
    assert output_of(uwml("bundle", str(run))) == "sample-uwml.zip\n"
    assert output_of(uwml("import", "sample-uwml.zip")).split() == [str(Path("logs/sample-uwml"))]
    assert [run.run_id for run in list_runs(tmp_path / "empty" / "logs")] == ["sample-uwml"]
    assert listing(installed) == before


@contextmanager
def serving(process: subprocess.Popen[str]) -> Iterator[str]:
    """Address that the app prints; it ends as with Ctrl-C."""
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://localhost:")
        yield address.replace("localhost", "127.0.0.1")
    finally:
        process.terminate()
        process.communicate(timeout=30)


@pytest.mark.browser
def test_app_in_an_empty_folder_gets_the_sample_runs_with_one_click(uwml, installed, tmp_path):
    before = listing(installed)
    with serving(uwml("app", f"--port={free_port()}")) as url, visit() as seen:
        # the very first request of the server is a deep link
        seen.open(f"{url}/training?run=sample-uwml")
        links = seen.page.get_by_test_id("stSidebarNavLink").all_inner_texts()
        assert [text.split()[-1] for text in links[:2]] == ["Runs", "Training"]
        assert list((tmp_path / "empty").iterdir()) == []
        seen.page.get_by_role("button", name="Add the sample runs").click()
        seen.page.locator(".st-key-plot-loss .uwml-plot .nsewdrag").wait_for(timeout=30_000)
        seen.settle(charts=8)
        assert seen.points("loss") > 100
        assert f"{url}/app/static/plotly.min.js" in seen.requests
        assert seen.foreign_hosts() == set()
        assert seen.exceptions() == []
        assert seen.errors == []
    assert sorted(run.run_id for run in list_runs(tmp_path / "empty" / "logs")) == SAMPLES
    assert listing(installed) == before


def test_demo_in_an_empty_folder_trains_beside_the_sample_runs(uwml, installed, tmp_path):
    before = listing(installed)
    process = uwml("demo", "--no-browser", f"--port={free_port()}", "--set", "train.epochs=1")
    logs = tmp_path / "empty" / "logs"
    with serving(process):
        deadline = time.monotonic() + 60
        while len(runs := list_runs(logs)) < 5 or runs[0].status == "running":
            assert time.monotonic() < deadline, [run.run_id for run in runs]
            time.sleep(0.2)
    assert sorted(run.run_id for run in runs[1:]) == SAMPLES
    assert (runs[0].name, runs[0].status) == ("demo", "finished")
    assert listing(installed) == before


def test_sample_runs_are_whole_and_leave_what_is_there(tmp_path):
    mine = tmp_path / "logs" / "sample-video"
    mine.mkdir(parents=True)
    (mine / "run.json").write_text(json.dumps({"mine": True}))
    assert add_sample_runs(tmp_path / "logs") == SAMPLES[:3]
    assert add_sample_runs(tmp_path / "logs") == []
    assert json.loads((mine / "run.json").read_text()) == {"mine": True}
    for run in list_runs(tmp_path / "logs"):
        if run.path != mine:
            assert run.health() == ()
            assert run.items() is not None
    assert not list((tmp_path / "logs").rglob(".*"))


def test_version_is_stated_once():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert not re.search(r'^version = "', text, re.M)
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)
