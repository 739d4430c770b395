"""Bundles: what goes in comes out, and nothing hostile does."""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
import zipfile
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.synthetic import make_run
from uwml_core.__main__ import main
from uwml_core.runlog.bundle import BundleChoice, bundle_size, write_bundle
from uwml_core.runlog.bundle_checks import BundleRefused, ImportLimits, name_problem
from uwml_core.runlog.bundle_import import import_bundle
from uwml_core.runlog.reader import Run, list_runs, open_run
from uwml_core.runlog.schema import TABLES

Files = dict[str, bytes]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return open_run(make_run(tmp_path_factory.mktemp("logs"), run_id="demo", name="“demo” <b>é</b>"))


@pytest.fixture(scope="module")
def bundle(source: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bundle(source, tmp_path_factory.mktemp("out") / "demo.zip")


def unzipped(path: Path) -> Files:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(
    files: Files, *, extra: Files | None = None, manifest: dict[str, object] | None = None
) -> io.BytesIO:
    """A zip whose manifest fits its files; ``extra`` is in the zip, and listed, under any name."""
    content = {name: data for name, data in files.items() if name != "manifest.json"} | (extra or {})
    described = json.loads(files["manifest.json"]) | {
        "files": [
            {"path": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in content.items()
        ]
    }
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("manifest.json", json.dumps(described | (manifest or {})))
        for name, data in content.items():
            archive.writestr(name, data)
    sink.seek(0)
    return sink


def refused(source: object, root: Path, limits: ImportLimits | None = None) -> str:
    with pytest.raises(BundleRefused) as caught:
        import_bundle(source, root, limits)  # type: ignore[arg-type]
    assert not root.exists() or list(root.iterdir()) == [], "something was left behind"
    return str(caught.value)


def test_imported_run_equals_the_raw_tables(source: Run, bundle: Path, tmp_path: Path) -> None:
    imported = open_run(import_bundle(bundle, tmp_path / "logs"))
    assert imported.run_id == "demo"
    assert imported.name == source.name
    checked = 0
    for table in TABLES:
        assert imported.table(table).equals(source.table(table)), table
        if source.has(table):
            raw, copied = (f"'{run.path}/{table}/*.parquet'" for run in (source, imported))
            different = f"SELECT count(*) FROM (FROM {raw} EXCEPT ALL FROM {copied})"
            assert duckdb.sql(different).fetchall() == [(0,)]
            checked += duckdb.sql(f"SELECT count(*) FROM {copied}").fetchall()[0][0]
    assert checked > 1000
    ours, theirs = source.items(), imported.items()
    assert ours is not None
    assert theirs is not None
    assert ours.equals(theirs)


def test_what_is_left_out_is_left_out_and_the_size_is_known_before(source: Run, tmp_path: Path) -> None:
    choice = BundleChoice(pictures=False, embeddings=False, pairs=False)
    path = write_bundle(source, tmp_path / "small.zip", choice)
    content = unzipped(path)
    assert not [name for name in content if "/snapshots/" in name or "/pairs/" in name]
    assert sum(map(len, content.values())) - len(content["manifest.json"]) == bundle_size(source, choice)
    items = open_run(import_bundle(path, tmp_path / "logs")).items()
    assert items is not None
    assert len(items) > 0
    assert items["thumbnail"].isna().all()
    assert items["captions"].notna().all()


def test_a_run_of_the_same_id_is_kept(bundle: Path, source: Run) -> None:
    root = source.path.parent
    second, third = import_bundle(bundle, root), import_bundle(bundle, root)
    assert [second.name, third.name] == ["demo-2", "demo-3"]
    assert {run.run_id for run in list_runs(root)} == {"demo", "demo-2", "demo-3"}
    assert open_run(third).info["run_id"] == "demo-3"
    assert source.info["run_id"] == "demo"


def test_an_open_file_is_taken_as_an_upload_is(bundle: Path, tmp_path: Path) -> None:
    assert import_bundle(io.BytesIO(bundle.read_bytes()), tmp_path / "logs").is_dir()


def test_an_existing_file_is_not_replaced(source: Run, tmp_path: Path) -> None:
    target = tmp_path / "mine.zip"
    target.write_bytes(b"precious")
    with pytest.raises(FileExistsError, match="exists"):
        write_bundle(source, target)
    assert target.read_bytes() == b"precious"
    assert [path.name for path in tmp_path.iterdir()] == ["mine.zip"]


def test_a_bundle_of_a_foreign_run_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "other" / "steps").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"has no run\.json"):
        write_bundle(open_run(tmp_path / "other"), tmp_path / "x.zip")
    assert not (tmp_path / "x.zip").exists()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../evil.parquet", "leads out"),
        ("run/../../evil.parquet", "leads out"),
        ("/etc/passwd", "absolute"),
        ("C:/evil.parquet", "absolute"),
        ("run\\..\\evil.parquet", "backslash"),
        ("run/notes/n\u202etxt.json", "not plain ASCII"),
        ("run/notes/ｎote.json", "not plain ASCII"),
        ("run/notes/con.json", "device"),
        ("run/NUL", "device"),
        ("run/com1.json", "device"),
        ("run/steps/evil.py", "no file of a run"),
        ("run/weights.pkl", "no file of a run"),
        ("run/checkpoint.pt", "no file of a run"),
        ("run/steps/", "no file of a run"),
        ("run/unknown/part-0000-000000000-000000001.parquet", "no file of a run"),
        ("run/steps/deeper/part-0000-000000000-000000001.parquet", "no file of a run"),
    ],
)
def test_a_hostile_name_is_refused(bundle: Path, tmp_path: Path, name: str, reason: str) -> None:
    message = refused(zipped(unzipped(bundle), extra={name: b"x"}), tmp_path / "logs")
    assert reason in message
    assert name_problem(name)


def test_a_name_with_a_nul_is_refused(bundle: Path, tmp_path: Path) -> None:
    files = unzipped(bundle)
    # what is cut at the NUL would pass
    packed = zipped(files, extra={"run/notes/a.json@.exe": b"x"}).getvalue()
    hostile = io.BytesIO(packed.replace(b"run/notes/a.json@.exe", b"run/notes/a.json\x00.exe"))
    assert "not plain ASCII" in refused(hostile, tmp_path / "logs")
    assert name_problem("")


def test_a_link_is_refused(bundle: Path, tmp_path: Path) -> None:
    files = unzipped(bundle)
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        link = zipfile.ZipInfo("run/notes/a.json")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    assert "link" in refused(sink, tmp_path / "logs")


@pytest.mark.parametrize("other", ["run/run.json", "run/Run.json"])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_comes_twice_is_refused(bundle: Path, tmp_path: Path, other: str) -> None:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, data in unzipped(bundle).items():
            archive.writestr(name, data)
        archive.writestr(other, b"{}")
    message = refused(sink, tmp_path / "logs")
    assert "twice" in message or "no file of a run" in message


def test_a_bomb_is_refused_before_it_is_unpacked(bundle: Path, tmp_path: Path) -> None:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in unzipped(bundle).items():
            archive.writestr(name, data)
        with archive.open("run/pairs/part-0009-000000000-000000001.parquet", "w", force_zip64=True) as file:
            for _ in range(1200):
                file.write(bytes(2**20))
    assert "zip bomb" in refused(sink, tmp_path / "logs")


def test_a_size_that_lies_is_found_while_unpacking(bundle: Path, tmp_path: Path) -> None:
    files = unzipped(bundle)
    listed = json.loads(files["manifest.json"])["files"]
    listed[1]["size"] -= 1
    message = refused(zipped(files, manifest={"files": listed}), tmp_path / "logs")
    assert "has not the" in message


def test_too_large_a_bundle_is_refused(bundle: Path, tmp_path: Path) -> None:
    assert "GiB" in refused(bundle, tmp_path / "logs", ImportLimits(total_bytes=10_000))
    assert "files" in refused(bundle, tmp_path / "logs", ImportLimits(files=3))


def test_a_wrong_hash_is_refused(bundle: Path, tmp_path: Path) -> None:
    files = unzipped(bundle)
    listed = json.loads(files["manifest.json"])["files"]
    listed[1]["sha256"] = "0" * 64
    assert "SHA-256" in refused(zipped(files, manifest={"files": listed}), tmp_path / "logs")


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        ({"bundle_version": 2}, "bundle_version=2"),
        ({"schema_version": 99}, "schema_version=99"),
        ({"schema_version": True}, "schema_version=True"),
        ({"run_id": "../up"}, "no folder name"),
        ({"run_id": None}, "no folder name"),
        ({"files": []}, "do not hold the same files"),
        ({"files": 3}, "cannot be used"),
        ({"files": [{"path": "run/run.json", "size": float("inf"), "sha256": "0" * 64}]}, "cannot be used"),
        ({"run_id": "con"}, "device"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(
    bundle: Path, tmp_path: Path, manifest: dict[str, object], reason: str
) -> None:
    assert reason in refused(zipped(unzipped(bundle), manifest=manifest), tmp_path / "logs")


def parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"PAR1 no PAR1", "no Parquet"),
        (parquet(pa.table({"step": ["a"]})), "expected int64"),
        (parquet(pa.table({"x": [1]})), "has no column step"),
    ],
)
def test_parquet_of_another_shape_is_refused(
    bundle: Path, tmp_path: Path, content: bytes, reason: str
) -> None:
    extra = {"run/steps/part-0007-000000000-000000001.parquet": content}
    assert reason in refused(zipped(unzipped(bundle), extra=extra), tmp_path / "logs")


@pytest.mark.parametrize(
    ("run_json", "reason"),
    [
        (b"[]", "expected an object"),
        (b"\xff", "no JSON"),
        (b'{"schema_version": 99}', "schema_version=99"),
        (b'{"schema_version": 1, "directions": ["i2t", "../x"]}', "directions"),
        (b'{"schema_version": 1}', "directions"),
        (b'{"schema_version": 1, "directions": ["i2t", "i2t"]}', "two different names"),
        (b'{"schema_version": 1, "name": "\\ud800"}', "surrogate"),
        (b"[" * 100_000, "no JSON"),
    ],
)
def test_a_run_json_that_does_not_fit_is_refused(
    bundle: Path, tmp_path: Path, run_json: bytes, reason: str
) -> None:
    files = unzipped(bundle) | {"run/run.json": run_json}
    assert reason in refused(zipped(files), tmp_path / "logs")


def test_items_of_another_data_set_are_refused(bundle: Path, tmp_path: Path) -> None:
    files = unzipped(bundle)
    name = next(name for name in files if name.startswith("items/"))
    other = {"items/" + "ab" * 32 + ".parquet": files[name]}
    assert "another data set" in refused(zipped(files, extra=other), tmp_path / "logs")


def test_items_that_are_there_already_stay(bundle: Path, source: Run, tmp_path: Path) -> None:
    root = tmp_path / "logs"
    (root / "_items").mkdir(parents=True)
    own = root / "_items" / f"{source.info['data_fingerprint']}.parquet"
    own.write_bytes(b"mine")
    import_bundle(bundle, root)
    assert own.read_bytes() == b"mine"


@pytest.mark.parametrize("cut", [0, 10, 1000])
def test_a_cut_or_foreign_file_is_refused(bundle: Path, tmp_path: Path, cut: int) -> None:
    whole = bundle.read_bytes()
    assert "no whole zip" in refused(io.BytesIO(whole[: len(whole) - cut - 1]), tmp_path / "logs")
    assert "no whole zip" in refused(io.BytesIO(os.urandom(cut)), tmp_path / "logs")


def test_a_column_name_that_is_no_text_is_refused(bundle: Path, tmp_path: Path) -> None:
    files = unzipped(bundle)
    name = next(name for name in files if name.startswith("run/evals/"))
    files[name] = files[name].replace(b"metric", b"metr\xff\xfe")
    assert "no Parquet" in refused(zipped(files), tmp_path / "logs")


def damaged(packed: bytes, kind: str) -> bytes:
    content = bytearray(packed)
    if kind == "offset":
        # where the directory begins, as the end of the zip says
        end = content.rfind(b"PK\x05\x06")
        content[end + 16 : end + 20] = (0xFFFFFFF0).to_bytes(4, "little")
        return bytes(content)
    content = bytearray(bytes(content).replace(b"manifest.json", b"manif\xffst.json"))
    first = content.find(b"PK\x01\x02")
    # the flag that says UTF-8
    content[first + 8 : first + 10] = (0x800).to_bytes(2, "little")
    return bytes(content)


@pytest.mark.parametrize("kind", ["offset", "name"])
@pytest.mark.parametrize("by_path", [False, True])
def test_a_damaged_directory_is_refused(bundle: Path, tmp_path: Path, kind: str, by_path: bool) -> None:
    path = tmp_path / "damaged.zip"
    path.write_bytes(damaged(bundle.read_bytes(), kind))
    source = path if by_path else io.BytesIO(path.read_bytes())
    assert "no whole zip" in refused(source, tmp_path / "logs")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_random_damage_is_refused_or_harmless(bundle: Path, tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    whole = zipped({name: data for name, data in unzipped(bundle).items() if name.endswith(".json")})
    refusals = 0
    for _ in range(300):
        content = bytearray(whole.getvalue())
        for place in random.integers(0, len(content), 3):
            content[place] = random.integers(256)
        try:
            import_bundle(io.BytesIO(bytes(content)), tmp_path / "logs")
        except BundleRefused:
            refusals += 1
    assert refusals > 200


def test_a_zip_without_manifest_is_refused(tmp_path: Path) -> None:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("run/run.json", b"{}")
    assert "no manifest.json" in refused(sink, tmp_path / "logs")


def test_commands_carry_a_run_from_folder_to_folder(
    source: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "run.zip"
    assert main(["bundle", str(source.path), "-o", str(target), "--no-embeddings"]) == 0
    assert main(["import", str(target), "--logs", str(tmp_path / "there")]) == 0
    assert capsys.readouterr().out.split() == [str(target), str(tmp_path / "there" / "demo")]
    assert main(["import", str(tmp_path / "none.zip"), "--logs", str(tmp_path / "there")]) == 2
    assert main(["bundle", str(source.path), "-o", str(target)]) == 2
    assert "exists" in capsys.readouterr().err
