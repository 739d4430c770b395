"""A run from a finished model, against nested loops over the arrays and DuckDB over the files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from PIL import Image

from uwml_core.__main__ import main
from uwml_core.runlog.reader import open_run
from uwml_core.training import evaluation, neighbors

CAPTIONS = [
    "a red heart",
    "ein rotes Herz",
    "红心 ❤️",
    "دب صغير",
    "<script>alert(1)</script>",
    "a bear\u2028on ice",
]
IMAGE_OF = [0, 0, 0, 1, 2, 1]


def unit(values: np.ndarray) -> np.ndarray:
    values = values.astype(np.float64)
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def some_vectors(rows: int, seed: int, levels: int | None = None, dim: int = 5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if levels is None:
        return rng.normal(size=(rows, dim))
    # few directions: many exact ties
    values = rng.integers(-levels, levels + 1, (rows, dim)).astype(float)
    values[~values.any(axis=1), 0] = 1.0
    return values


def saved(folder: Path, **arrays: Any) -> list[str]:
    """Words of the command line for arrays, each saved under its name."""
    words = []
    for name, values in arrays.items():
        np.save(folder / f"{name}.npy", values)
        words += [f"--{name}", str(folder / f"{name}.npy")]
    return words


def pairs_csv(path: Path, **columns: Any) -> list[str]:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return ["--pairs", str(path)]


def made(folder: Path, *words: str) -> Path:
    assert main(["diagnose-embeddings", "--logs", str(folder / "logs"), "--run-id", "run", *words]) == 0
    return folder / "logs" / "run"


def query(run: Path, sql: str) -> list[tuple[Any, ...]]:
    connection = duckdb.connect()
    try:
        return connection.execute(sql.format(**{t: f"'{run}/{t}/*.parquet'" for t in TABLES})).fetchall()
    finally:
        connection.close()


TABLES = ("evals", "ranks", "snapshots", "neighbors", "events")


def slow_rank(scores: list[float], positive: list[bool]) -> float:
    best = max(s for s, p in zip(scores, positive, strict=True) if p)
    above = sum(s > best for s, p in zip(scores, positive, strict=True) if not p)
    tied = sum(s == best for s, p in zip(scores, positive, strict=True) if not p)
    alike = sum(s == best for s, p in zip(scores, positive, strict=True) if p)
    return 1 + above + tied / (1 + alike)


def slow_ranks(
    sim: np.ndarray, image_of: list[int], labels: list[int], texts: list[str]
) -> tuple[dict[tuple[int, Any], float], dict[tuple[int, Any], float]]:
    """Expected rank of each query by (item, caption), both ways."""
    images = range(len(labels))
    owned = {label: {texts[t] for t, i in enumerate(image_of) if labels[i] == label} for label in labels}
    first: dict[tuple[int, str], tuple[int, int, int]] = {}
    for image in images:
        own = [t for t, i in enumerate(image_of) if i == image]
        for caption, t in enumerate(own):
            first.setdefault((labels[image], texts[t]), (image, caption, t))
    there = {
        (image, None): slow_rank(
            [sim[image, t] for _, _, t in first.values()],
            [text in owned[labels[image]] for _, text in first],
        )
        for image in images
    }
    back = {
        (image, caption): slow_rank([sim[i, t] for i in images], [text in owned[labels[i]] for i in images])
        for (_, text), (image, caption, t) in first.items()
    }
    return there, back


def logged_ranks(run: Path, direction: str) -> dict[tuple[int, Any], float]:
    sql = f"SELECT item_id, caption, rank FROM {{ranks}} WHERE direction = '{direction}'"
    return {(item, caption): rank for item, caption, rank in query(run, sql)}


@pytest.mark.parametrize("kind", ["embeddings", "similarities"])
@pytest.mark.parametrize("levels", [None, 1])
def test_ranks_and_recall_equal_nested_loops(tmp_path, monkeypatch, capsys, kind, levels):
    monkeypatch.setattr(evaluation, "_CHUNK", 7)
    rng = np.random.default_rng(4)
    images, texts = some_vectors(23, 1, levels), some_vectors(60, 2, levels)
    image_of = [*range(23), *rng.integers(0, 23, 37).tolist()]
    labels, words = rng.integers(0, 15, 23).tolist(), [f"w{k}" for k in rng.integers(0, 30, 60)]
    sim = unit(images) @ unit(texts).T
    (tmp_path / "words.txt").write_text("\n".join(words), encoding="utf-8")
    arrays = {"images": images, "texts": texts} if kind == "embeddings" else {"similarities": sim}
    given = saved(tmp_path, **arrays, pairs=np.array(image_of), labels=np.array(labels))
    run = made(tmp_path, *given, "--captions", str(tmp_path / "words.txt"))
    if kind == "embeddings":
        # exactly the products of the ranks, so that ties are the same
        import torch

        sim = (torch.from_numpy(unit(images)) @ torch.from_numpy(unit(texts)).T).numpy()
    for direction, expected in zip(
        ("i2t", "t2i"), slow_ranks(sim.round(12), image_of, labels, words), strict=True
    ):
        found = logged_ranks(run, direction)
        assert found.keys() == expected.keys()
        if levels is None:
            assert found == expected
        for k in (1, 5, 10):
            sql = f"SELECT 100.0 * avg((rank <= {k})::INT) FROM {{ranks}} WHERE direction = '{direction}'"
            told = f"SELECT value, n FROM {{evals}} WHERE direction = '{direction}' AND metric = 'R@{k}'"
            (value, n), (recount,) = query(run, told)[0], query(run, sql)[0]
            assert value == pytest.approx(recount)
            assert n == len(expected)
    assert str(run) in capsys.readouterr().out.splitlines()[-1]


def test_exact_ties_count_as_expected_ranks(tmp_path):
    sim = np.array([[0.5, 0.5, 0.5], [0.5, 0.5, 0.1], [0.9, 0.5, 0.5]], dtype=np.float16)
    run = made(tmp_path, *saved(tmp_path, similarities=sim))
    assert logged_ranks(run, "i2t") == {(0, None): 2.0, (1, None): 1.5, (2, None): 2.5}
    assert logged_ranks(run, "t2i") == {(0, 0): 2.5, (1, 0): 2.0, (2, 0): 1.5}
    assert query(run, "SELECT DISTINCT tied_share FROM {evals} WHERE direction = 'i2t'") == [(1.0,)]


def test_neighbors_are_the_nearest_of_another_label(tmp_path, monkeypatch):
    monkeypatch.setattr(neighbors, "_CHUNK", 4)
    images, texts = some_vectors(12, 5), some_vectors(12, 6)
    labels = [k // 2 for k in range(12)]
    run = made(tmp_path, *saved(tmp_path, images=images, texts=texts, labels=np.array(labels)))
    sim = unit(images) @ unit(texts).T
    for direction, matrix in (("i2t", sim), ("t2i", sim.T)):
        for item in range(12):
            wrong = sorted(
                ((matrix[item, k], k) for k in range(12) if labels[k] != labels[item]), reverse=True
            )
            rows = query(
                run,
                "SELECT negative_item_id, similarity, positive_similarity, split FROM {neighbors} "
                f"WHERE direction = '{direction}' AND item_id = {item} ORDER BY rank",
            )
            assert [row[0] for row in rows] == [k for _, k in wrong[:5]]
            assert [row[1] for row in rows] == pytest.approx([s for s, _ in wrong[:5]], abs=1e-6)
            assert [row[2] for row in rows] == pytest.approx([sim[item, item]] * 5, abs=1e-6)
            assert {row[3] for row in rows} == {"val"}


def test_neighbors_of_a_matrix_are_those_of_the_embeddings(tmp_path):
    images, texts = some_vectors(9, 5), some_vectors(20, 6)
    pairs = saved(tmp_path, pairs=np.array([*range(9), *[0] * 11]))
    both = []
    matrix = {"similarities": unit(images) @ unit(texts).T}
    for folder, arrays in (("a", {"images": images, "texts": texts}), ("b", matrix)):
        (tmp_path / folder).mkdir()
        run = made(tmp_path / folder, *saved(tmp_path / folder, **arrays), *pairs)
        both.append(query(run, "SELECT * FROM {neighbors} ORDER BY direction, item_id, rank"))
    flat = [[value for row in rows for value in row] for rows in both]
    assert flat[0] == [
        pytest.approx(value, abs=1e-6) if isinstance(value, float) else value for value in flat[1]
    ]
    assert len(both[0]) == 2 * 9 * 5


def test_snapshot_holds_unit_rows_of_the_first_captions(tmp_path):
    images, texts = some_vectors(3, 1) * 1e3, some_vectors(6, 2).astype(np.float32) * 1e-6
    run = made(tmp_path, *saved(tmp_path, images=images, texts=texts, pairs=np.array(IMAGE_OF)))
    rows = query(run, "SELECT step, epoch, modality, item_id, label, split, embedding FROM {snapshots}")
    assert [(row[0], row[1], row[5]) for row in rows] == [(0, 0, "val")] * 6
    assert [row[2:5] for row in rows] == [(m, k, k) for m in ("image", "text") for k in range(3)]
    expected = np.concatenate([unit(images), unit(texts)[[0, 3, 4]]])
    np.testing.assert_allclose([row[6] for row in rows], expected, atol=1e-3)


def test_splits_groups_and_sample_come_from_the_pair_file(tmp_path):
    splits = ["train"] * 1200 + ["test"] * 30
    groups = ["a", "b"] * 615
    index = pairs_csv(tmp_path / "p.csv", image=range(1230), split=splits, group=groups)
    run = made(tmp_path, *saved(tmp_path, images=some_vectors(1230, 1), texts=some_vectors(1230, 2)), *index)
    assert query(run, "SELECT DISTINCT split FROM {evals}") == [("test",)]
    assert query(run, "SELECT count(*) FROM {ranks}") == [(60,)]
    counted = query(run, "SELECT split, modality, count(*) FROM {snapshots} GROUP BY ALL ORDER BY ALL")
    assert [(split, n) for split, _, n in counted] == [
        ("test", 30),
        ("test", 30),
        ("train", 1000),
        ("train", 1000),
    ]
    items = open_run(run).items()
    assert items["group"].tolist() == groups
    chosen = items.loc[sorted({row[0] for row in query(run, "SELECT item_id FROM {snapshots}")}), "group"]
    assert chosen.value_counts().to_dict() == {"a": 515, "b": 515}


def a_picture(kind: str = "PNG", size: tuple[int, int] = (200, 100)) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, "red").save(buffer, kind)
    return buffer.getvalue()


def test_captions_and_pictures_reach_the_items_as_they_are(tmp_path, capsys):
    folder = tmp_path / "pictures"
    folder.mkdir()
    (folder / "0.png").write_bytes(a_picture())
    (folder / "001.JPG").write_bytes(b"no picture")
    (folder / "notes.txt").write_text("x")
    (tmp_path / "c.txt").write_text("\ufeff" + "\r\n".join(CAPTIONS) + "\r\n", encoding="utf-8", newline="")
    run = made(
        tmp_path,
        *saved(tmp_path, images=some_vectors(3, 1), texts=some_vectors(6, 2), pairs=np.array(IMAGE_OF)),
        *["--captions", str(tmp_path / "c.txt"), "--pictures", str(folder), "--name", "名 <b>"],
    )
    items = open_run(run).items()
    assert [list(texts) for texts in items["captions"]] == [
        CAPTIONS[:3],
        [CAPTIONS[3], CAPTIONS[5]],
        [CAPTIONS[4]],
    ]
    assert Image.open(io.BytesIO(items["thumbnail"][0])).size == (96, 48)
    assert items["thumbnail"].isna().tolist() == [False, True, True]
    assert "2 of 3 pictures are missing or cannot be decoded" in capsys.readouterr().out
    described = json.loads((run / "run.json").read_text(encoding="utf-8"))
    assert described["name"] == "名 <b>"
    assert described["status"] == "finished"
    told = {"images": "images.npy", "texts": "texts.npy", "pairs": "pairs.npy", "captions": "c.txt"}
    assert described["config"] == {"finished_model": {**told, "pictures": "pictures"}}
    assert str(tmp_path) not in (run / "run.json").read_text(encoding="utf-8")


def test_named_pictures_and_a_csv_of_captions(tmp_path):
    folder = tmp_path / "clips"
    folder.mkdir()
    (folder / "héart ❤.gif").write_bytes(a_picture("GIF", (10, 10)))
    index = pairs_csv(tmp_path / "p.csv", text=[1, 0], image=[0, 1], picture=["héart ❤.gif", "gone.gif"])
    with (tmp_path / "c.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["caption"], ["two,\nlines"], ["one"]])
    run = made(
        tmp_path,
        *saved(tmp_path, images=some_vectors(2, 1), texts=some_vectors(2, 2)),
        *[
            *index,
            "--pictures",
            str(folder),
            "--captions",
            str(tmp_path / "c.csv"),
            "--modalities",
            "video",
            "text",
        ],
    )
    opened = open_run(run)
    items = opened.items()
    assert items["item_key"].tolist() == ["héart ❤.gif", "gone.gif"]
    assert [list(texts) for texts in items["captions"]] == [["one"], ["two,\nlines"]]
    assert items["thumbnail"].isna().tolist() == [False, True]
    assert opened.directions == ("v2t", "t2v")
    assert {row[0] for row in query(run, "SELECT modality FROM {snapshots}")} == {"video", "text"}


def test_duplicated_texts_are_one_candidate_and_a_shared_one_is_right_for_both(tmp_path):
    sim = np.array([[0.1, 0.2, 0.9, 0.3], [0.1, 0.8, 0.4, 0.2]])
    (tmp_path / "c.txt").write_text("pet\npet\ndog\npet\n", encoding="utf-8")
    run = made(
        tmp_path,
        *saved(tmp_path, similarities=sim, pairs=np.array([0, 0, 0, 1])),
        *["--captions", str(tmp_path / "c.txt")],
    )
    assert logged_ranks(run, "t2i") == {(0, 0): 1.0, (0, 2): 1.0, (1, 0): 1.0}
    assert logged_ranks(run, "i2t") == {(0, None): 1.0, (1, None): 2.0}


def test_a_text_of_two_images_is_right_for_both(tmp_path):
    sim = np.array([[0.9, 0.1], [0.8, 0.7]])
    index = pairs_csv(tmp_path / "p.csv", image=[0, 1, 1], text=[0, 0, 1])
    run = made(tmp_path, *saved(tmp_path, similarities=sim), *index)
    assert logged_ranks(run, "i2t") == {(0, None): 1.0, (1, None): 1.0}
    assert set(logged_ranks(run, "t2i").values()) == {1.0}


def test_one_pair_is_found_at_once(tmp_path, capsys):
    run = made(tmp_path, *saved(tmp_path, images=np.ones((1, 3)), texts=np.ones((1, 3), np.float16)))
    assert logged_ranks(run, "i2t") == {(0, None): 1.0}
    assert "rsum 600.00" in capsys.readouterr().out
    assert open_run(run).frame("neighbors").empty


def test_texts_without_an_image_are_left_out_and_counted(tmp_path, capsys):
    index = pairs_csv(tmp_path / "p.csv", image=[0, 1], text=[2, 0])
    made(tmp_path, *saved(tmp_path, images=some_vectors(2, 1), texts=some_vectors(5, 2)), *index)
    assert "3 text rows belong to no image and are left out" in capsys.readouterr().out


def test_a_matrix_makes_no_snapshot_and_says_so(tmp_path, capsys):
    run = made(tmp_path, *saved(tmp_path, similarities=some_vectors(4, 1, dim=4)))
    assert not open_run(run).has("snapshots")
    assert "no embedding map" in capsys.readouterr().out


def test_a_run_is_never_overwritten(tmp_path, capsys):
    given = saved(tmp_path, similarities=np.eye(2))
    run = made(tmp_path, *given)
    before = (run / "run.json").read_bytes()
    assert main(["diagnose-embeddings", *given, "--logs", str(tmp_path / "logs"), "--run-id", "run"]) == 2
    assert "run_id='run' exists" in capsys.readouterr().err
    assert (run / "run.json").read_bytes() == before


class Bomb:
    """Pickled, it would make a file when loaded."""

    def __reduce__(self):
        return (open, ("/tmp/pickled-code-ran", "w"))


def zero_row(rows: int) -> np.ndarray:
    values = some_vectors(rows, 3)
    values[1] = 0.0
    return values


GOOD = some_vectors(3, 1)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"images": np.array([[Bomb()]], dtype=object)}, "images.npy: cannot be read; expected a whole .npy"),
        ({"images": np.ones(3)}, "images.npy: has shape [3]; expected [rows, dim]"),
        ({"images": np.ones((0, 5))}, "images.npy: has shape [0, 5]"),
        ({"images": np.ones((3, 5), np.int64)}, "images.npy: has type int64; expected float16"),
        ({"images": np.ones((3, 5), np.complex64)}, "images.npy: has type complex64"),
        ({"images": zero_row(3)}, "images.npy, row 1: is zero"),
        ({"texts": np.where(zero_row(3) == 0, np.nan, 1.0)}, "texts.npy, row 1: is not finite"),
        ({"texts": some_vectors(3, 1, dim=4)}, "texts.npy has dim 4 and images.npy 5"),
        ({"texts": some_vectors(4, 1)}, "text rows: are 4 for 3 images; expected --pairs"),
        ({"pairs": np.array([0, 1])}, "pairs.npy: has 2 rows; expected 3"),
        ({"pairs": np.array([0, 1, 3])}, "pairs.npy, row 2: is 3, not an image row; expected 0 to 2"),
        ({"pairs": np.array([0, 1, -1])}, "pairs.npy, row 2: is -1"),
        ({"pairs": np.array([0, 1, 1])}, "pairs.npy: 1 of 3 images have no text, first image row 2"),
        ({"pairs": np.array([0.0, 1.0, 2.0])}, "pairs.npy: has shape [3] and type float64"),
        ({"labels": np.array([0, 1])}, "labels.npy: has 2 labels; expected 3"),
        ({"labels": np.array([0, 1, 2**40])}, "labels.npy, row 2: is 1099511627776"),
        ({"similarities": np.eye(3)}, "expected --images and --texts, or --similarities alone"),
    ],
)
def test_arrays_that_do_not_fit_are_one_line_and_leave_nothing(tmp_path, capsys, arrays, message):
    words = saved(tmp_path, **{"images": GOOD, "texts": GOOD, **arrays})
    assert main(["diagnose-embeddings", *words, "--logs", str(tmp_path / "logs")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "logs").exists()
    assert not Path("/tmp/pickled-code-ran").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "column 'image': is missing; the first line has nothing"),
        ("picture\na\n", "column 'image': is missing; the first line has picture"),
        ("image\n0\nx\n2\n", "column 'image', row 1: is 'x'; expected the number of a row, 0 to 2"),
        ("image\n0\n١\n2\n", "column 'image', row 1"),
        ("image,text\n0,0\n1\n2,2\n", "row 1: has 1 values; expected 2"),
        ("image,text\n0,0\n1,1\n2,9\n", "column 'text', row 2: is '9'"),
        ("image,split\n0,a\n1,a\n2,a\n0,b\n", "has 4 rows; expected 3"),
        ("image,text,split\n0,0,a\n1,1,a\n2,2,a\n0,1,b\n", "column 'split', row 3: is 'b'; expected 'a'"),
        ("image,text,picture\n0,0,../secret.png\n1,1,\n2,2,\n", "does not hold '../secret.png'"),
        ("image,text,picture\n0,0,/etc/passwd\n1,1,\n2,2,\n", "does not hold '/etc/passwd'"),
        ("image,text,picture\n0,0,link.png\n1,1,\n2,2,\n", "does not hold 'link.png'"),
    ],
)
def test_pair_files_that_do_not_fit_are_one_line(tmp_path, capsys, text, message):
    (tmp_path / "pictures").mkdir()
    (tmp_path / "secret.png").write_bytes(a_picture())
    (tmp_path / "pictures" / "link.png").symlink_to(tmp_path / "secret.png")
    (tmp_path / "p.csv").write_text(text, encoding="utf-8")
    words = saved(tmp_path, images=GOOD, texts=GOOD)
    words += ["--pairs", str(tmp_path / "p.csv"), "--pictures", str(tmp_path / "pictures")]
    assert main(["diagnose-embeddings", *words, "--logs", str(tmp_path / "logs")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"one\ntwo\n", "has 2 captions; expected 3"),
        (b"one\n \nthree", "row 1: is empty"),
        (b"one\n\xff\xfe\n\n", "row 1: is no UTF-8 (byte 0xff); save the file as UTF-8"),
        (b"\xef\xbb\xbfone\r\ntwo\xe2\x80\xa8and\r\n", "has 2 captions; expected 3"),
    ],
)
def test_captions_that_do_not_fit_are_one_line(tmp_path, capsys, content, message):
    (tmp_path / "c.txt").write_bytes(content)
    words = [*saved(tmp_path, images=GOOD, texts=GOOD), "--captions", str(tmp_path / "c.txt")]
    assert main(["diagnose-embeddings", *words, "--logs", str(tmp_path / "logs")]) == 2
    assert f"c.txt{', ' if 'row' in message else ': '}{message}" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"not an array", b"PK\x03\x04"])
def test_files_that_are_no_array_are_one_line(tmp_path, capsys, content):
    words = saved(tmp_path, texts=GOOD)
    (tmp_path / "i.npy").write_bytes(content)
    assert main(["diagnose-embeddings", *words, "--images", str(tmp_path / "i.npy")]) == 2
    assert "i.npy: cannot be read; expected a whole .npy file" in capsys.readouterr().err


def test_an_archive_and_a_missing_file_are_one_line(tmp_path, capsys):
    np.savez(tmp_path / "i.npz", GOOD)
    for name, message in (("i.npz", "i.npz: cannot be read"), ("none.npy", "does not exist")):
        words = [*saved(tmp_path, texts=GOOD), "--images", str(tmp_path / name)]
        assert main(["diagnose-embeddings", *words]) == 2
        assert message in capsys.readouterr().err


def test_modalities_that_give_equal_directions_leave_nothing(tmp_path, capsys):
    words = [*saved(tmp_path, similarities=np.eye(2)), "--modalities", "text", "text"]
    assert main(["diagnose-embeddings", *words, "--logs", str(tmp_path / "logs")]) == 2
    assert "modalities" in capsys.readouterr().err
    assert not (tmp_path / "logs").exists()
