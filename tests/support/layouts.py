"""Every layout that data sets come in, tiny: coloured pictures with captions that name the colour.

One place for the genuine form of each; what is wrong with them is in tests/data.
"""

from __future__ import annotations

import csv
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

COLOURS = ("red", "lime", "blue", "gold", "cyan", "pink", "brown", "white", "black", "gray", "navy", "olive")
SHADES = ("small", "large", "round")
ITEMS = len(COLOURS) * len(SHADES)
CAPTIONS = 5


def split_of(item: int, held_out: str = "val") -> str:
    """Every third item is evaluated."""
    return held_out if item % 3 == 2 else "train"


def captions_of(item: int) -> list[str]:
    """Five captions that name an item's colour and shade."""
    colour, shade = COLOURS[item % len(COLOURS)], SHADES[item // len(COLOURS)]
    forms = ("a {s} {c} shape", "{c} and {s}", "one {s} thing in {c}", "the {c} one, {s}", "{s}: {c}")
    return [form.format(s=shade, c=colour) for form in forms]


def image(item: int) -> Image.Image:
    """A square of the item's colour on grey, its size the shade."""
    edge = 8 + 6 * (item // len(COLOURS))
    picture = Image.new("RGB", (48, 48), (120, 120, 120))
    picture.paste(COLOURS[item % len(COLOURS)], (24 - edge, 24 - edge, 24 + edge, 24 + edge))
    return picture


def encoded(item: int, kind: str = "PNG") -> bytes:
    """The same as a file."""
    buffer = io.BytesIO()
    image(item).save(buffer, kind)
    return buffer.getvalue()


def features(dim: int) -> np.ndarray:
    """A vector for each item, near to those of the same colour."""
    rng = np.random.default_rng(0)
    colours, shades = rng.normal(size=(len(COLOURS), dim)), rng.normal(size=(len(SHADES), dim))
    return np.array(
        [colours[k % len(COLOURS)] + 0.5 * shades[k // len(COLOURS)] for k in range(ITEMS)], np.float32
    )


def karpathy(folder: Path) -> Path:
    """dataset_flickr8k.json beside its pictures."""
    images: list[dict[str, Any]] = []
    for k in range(ITEMS):
        (folder / f"{k:03}.jpg").write_bytes(encoded(k, "JPEG"))
        sentences = [
            {"tokens": text.split(), "raw": text, "imgid": k, "sentid": CAPTIONS * k + j}
            for j, text in enumerate(captions_of(k))
        ]
        ids = [sentence["sentid"] for sentence in sentences]
        images.append(
            {
                "filename": f"{k:03}.jpg",
                "imgid": k,
                "sentids": ids,
                "split": split_of(k),
                "sentences": sentences,
            }
        )
    path = folder / "dataset_flickr8k.json"
    path.write_text(json.dumps({"images": images, "dataset": "flickr8k"}))
    return path


def precomp(folder: Path) -> Path:
    """Features of 36 regions with five captions each."""
    vectors = features(32)
    for part, split in (("train", "train"), ("dev", "val")):
        items = [k for k in range(ITEMS) if split_of(k) == split]
        noise = np.random.default_rng(1).normal(scale=0.1, size=(len(items), 36, 32))
        np.save(folder / f"{part}_ims.npy", (vectors[items][:, None] + noise).astype(np.float32))
        lines = [text for k in items for text in captions_of(k)]
        (folder / f"{part}_caps.txt").write_text("\n".join(lines) + "\n")
        (folder / f"{part}_ids.txt").write_text("\n".join(map(str, items)) + "\n")
    return folder


def msrvtt(folder: Path) -> Path:
    """MSRVTT_data.json with the csv files of 1k-A and clips as mp4."""
    import av

    videos = [{"video_id": f"video{k}", "category": k % 20, "split": "train", "id": k} for k in range(ITEMS)]
    sentences = [
        {"caption": text, "video_id": f"video{k}", "sen_id": CAPTIONS * k + j}
        for k in range(ITEMS)
        for j, text in enumerate(captions_of(k))
    ]
    (folder / "MSRVTT_data.json").write_text(json.dumps({"videos": videos, "sentences": sentences}))
    train = [k for k in range(ITEMS) if split_of(k) == "train"]
    (folder / "MSRVTT_train.9k.csv").write_text("\n".join(["video_id", *(f"video{k}" for k in train)]))
    tested = [k for k in range(ITEMS) if k not in train]
    rows = [f"ret{n},msr{k},video{k},{captions_of(k)[0]}" for n, k in enumerate(tested)]
    (folder / "MSRVTT_JSFUSION_test.csv").write_text("\n".join(["key,vid_key,video_id,sentence", *rows]))
    (folder / "videos").mkdir()
    for k in range(ITEMS):
        with av.open(str(folder / "videos" / f"video{k}.mp4"), "w") as container:
            stream = container.add_stream("libx264", rate=5)
            stream.width, stream.height, stream.pix_fmt = 48, 48, "yuv420p"
            for _ in range(8):
                container.mux(stream.encode(av.VideoFrame.from_image(image(k))))
            container.mux(stream.encode())
    return folder


def shards(folder: Path) -> Path:
    """Two tar files whose names say the split."""
    for split in ("train", "val"):
        with tarfile.open(folder / f"{split}-00000.tar", "w") as archive:
            for k in range(ITEMS):
                if split_of(k) != split:
                    continue
                for suffix, data in (("png", encoded(k)), ("txt", captions_of(k)[0].encode())):
                    info = tarfile.TarInfo(f"{k:06}.{suffix}")
                    info.size = len(data)
                    archive.addfile(info, io.BytesIO(data))
    return folder


def table(folder: Path) -> Path:
    """A TSV as open_clip reads it, its pictures in another folder, a line per caption."""
    (folder / "images").mkdir()
    lines = ["filepath\ttitle\tsplit"]
    for k in range(ITEMS):
        (folder / "images" / f"{k}.png").write_bytes(encoded(k))
        lines += [f"images/{k}.png\t{text}\t{split_of(k)}" for text in captions_of(k)]
    path = folder / "pairs.tsv"
    path.write_text("\n".join(lines))
    return path


def picture_folder(folder: Path) -> Path:
    """Pictures with one CSV of captions beside them."""
    with (folder / "captions.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["image", "caption", "split"])
        for k in range(ITEMS):
            (folder / f"{k}.webp").write_bytes(encoded(k, "WEBP"))
            writer.writerow([f"{k}.webp", captions_of(k)[0], split_of(k)])
    return folder


def saved_dataset(folder: Path) -> Path:
    """What ``datasets.DatasetDict.save_to_disk`` leaves."""
    import datasets

    parts = {}
    for name, split in (("train", "train"), ("validation", "val")):
        items = [k for k in range(ITEMS) if split_of(k) == split]
        columns = {
            "image": [{"bytes": encoded(k), "path": None} for k in items],
            "caption": [captions_of(k) for k in items],
        }
        types = {"image": datasets.Image(), "caption": datasets.Sequence(datasets.Value("string"))}
        parts[name] = datasets.Dataset.from_dict(columns, features=datasets.Features(types))
    datasets.DatasetDict(parts).save_to_disk(str(folder / "saved"))
    return folder / "saved"


LAYOUTS: dict[str, Callable[[Path], Path]] = {
    "karpathy": karpathy,
    "precomp": precomp,
    "msrvtt": msrvtt,
    "shards": shards,
    "table": table,
    "pictures": picture_folder,
    "saved": saved_dataset,
}


def finished_model(folder: Path) -> list[str]:
    """Embeddings of a trained model as .npy with a CSV of pairs; the words that diagnose them."""
    items = [k for k in range(ITEMS) if split_of(k) == "val"]
    vectors = features(16)[items]
    texts = np.repeat(vectors, CAPTIONS, axis=0)
    np.save(folder / "images.npy", vectors)
    np.save(folder / "texts.npy", texts + np.random.default_rng(2).normal(scale=0.3, size=texts.shape))
    lines = [f"{row},test" for row in range(len(items)) for _ in range(CAPTIONS)]
    (folder / "pairs.csv").write_text("\n".join(["image,split", *lines]))
    (folder / "captions.txt").write_text("\n".join(text for k in items for text in captions_of(k)))
    (folder / "pictures").mkdir()
    for row, k in enumerate(items):
        (folder / "pictures" / f"{row}.png").write_bytes(encoded(k))
    named = {"images": "images.npy", "texts": "texts.npy", "pairs": "pairs.csv", "captions": "captions.txt"}
    named |= {"pictures": "pictures"}
    return [word for option, name in named.items() for word in (f"--{option}", str(folder / name))]
