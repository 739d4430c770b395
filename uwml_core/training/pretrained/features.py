"""Features of a data set by a frozen encoder, computed once and kept in the cache folder."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from tqdm import tqdm

from uwml_core.data import PairDataset
from uwml_core.data.pictures import decode
from uwml_core.data.streamed import StreamedPictures
from uwml_core.runlog.cache_folder import cache_folder
from uwml_core.training.pretrained import images, texts
from uwml_core.training.pretrained.images import ImageEncoder
from uwml_core.training.pretrained.names import IMAGE_LIBRARIES, TEXT_LIBRARIES, check_encoder
from uwml_core.training.pretrained.texts import TextEncoder

_CHUNK = 32
_FOLDER = "features"
# raised when the way of computing changes
_VERSION = 1

Floats = npt.NDArray[np.floating[Any]]


def picture_features(dataset: PairDataset, name: str, *, progress: bool = False) -> Floats:
    """Features of the pictures of a data set; of a clip, the mean over its frames.

    Args:
        dataset: with encoded pictures.
        name: the encoder, see ``check_encoder``.
        progress: show a bar on standard error while they are computed.

    Returns:
        Memory-mapped float32 ``[n, D]``.

    Raises:
        ValueError: for an unknown name, data without pictures, or an encoder that cannot be loaded.
        OSError: if the cache folder cannot be written.
    """
    library, model = check_encoder(name, IMAGE_LIBRARIES, "model.image_encoder")
    encoded = dataset.encoded
    if encoded is None:
        raise ValueError(f"model.image_encoder={name!r} needs pictures; {dataset.name} has features alone")

    def ready() -> Callable[[slice], torch.Tensor]:
        encoder: ImageEncoder = loaded(images.load, library, model, name)
        stream = StreamedPictures(dataset.name, dataset.item_keys, encoded, clips=True)

        def prepared(frames: Sequence[bytes]) -> torch.Tensor:
            return torch.stack([encoder.prepare(decode(frame)) for frame in frames])

        def embed(part: slice) -> torch.Tensor:
            rows = np.arange(part.start, part.stop)
            features: torch.Tensor = encoder.embed(torch.cat(stream.each(rows, prepared)))
            return features.view(len(rows), -1, features.shape[1]).mean(dim=1)

        return embed

    return _kept(ready, len(dataset), [name, dataset.fingerprint], name if progress else None)


def text_features(captions: Sequence[str], name: str, *, progress: bool = False) -> Floats:
    """Features of texts.

    Args:
        captions: the texts, n of them.
        name: the encoder, see ``check_encoder``.
        progress: show a bar on standard error while they are computed.

    Returns:
        Memory-mapped float32 ``[n, D]``.

    Raises:
        ValueError: for an unknown name, or an encoder that cannot be loaded.
        OSError: if the cache folder cannot be written.
    """
    library, model = check_encoder(name, TEXT_LIBRARIES, "model.text_encoder")

    def ready() -> Callable[[slice], torch.Tensor]:
        encoder: TextEncoder = loaded(texts.load, library, model, name)
        return lambda part: encoder(captions[part])

    return _kept(ready, len(captions), [name, *captions], name if progress else None)


def loaded(load: Callable[[str, str], Any], library: str, model: str, name: str) -> Any:
    """An encoder, or one sentence about why there is none.

    Args:
        load: ``images.load`` or ``texts.load``.
        library, model: for it.
        name: what the configuration calls the encoder.

    Raises:
        ValueError: if the library is missing, or finds no weights.
    """
    try:
        return load(library, model)
    except ImportError as error:
        raise ValueError(str(error)) from error
    except Exception as error:  # each library has its own errors for weights that it cannot get
        said = str(error).strip().partition("\n")[0][:200] or type(error).__name__
        problem = f"encoder {name!r} cannot be loaded ({said})"
        raise ValueError(f"{problem}; where weights cannot be downloaded, name a local folder") from error


def _kept(
    ready: Callable[[], Callable[[slice], torch.Tensor]],
    count: int,
    key: Sequence[str],
    title: str | None,
) -> Floats:
    """The features from the cache, computed when they are not there."""
    digest = hashlib.sha256(str(_VERSION).encode())
    for text in key:
        digest.update(f"{len(text)}:".encode() + text.encode("utf-8", "surrogatepass"))
    path = cache_folder() / _FOLDER / f"{digest.hexdigest()[:32]}.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, _computed(ready(), count, title))
    return np.lib.format.open_memmap(path, mode="r")


def _computed(embed: Callable[[slice], torch.Tensor], count: int, title: str | None) -> Floats:
    parts = []
    with torch.inference_mode(), tqdm(total=count, desc=title, disable=title is None, mininterval=0.5) as bar:
        for start in range(0, count, _CHUNK):
            part = slice(start, min(start + _CHUNK, count))
            parts.append(embed(part).float().numpy())
            bar.update(part.stop - part.start)
    return np.concatenate(parts)


def _write(path: Path, values: Floats) -> None:
    temporary = path.with_name(f".{path.name}-{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            np.save(file, values, allow_pickle=False)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
