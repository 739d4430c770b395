"""Encoded pictures to tensors and to thumbnails."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image, ImageOps

PICTURE_SIZE = 32
THUMBNAIL_SIZE = 96
STRIP_FRAMES = 4

_FORMATS = ("WEBP", "PNG", "JPEG", "GIF", "BMP")
_UNDECODABLE = (OSError, SyntaxError, ValueError, Image.DecompressionBombError)
_THREADS = 2
_CHUNK = 256

Encoded = bytes | Sequence[bytes]


def decode(data: bytes) -> Image.Image:
    """One encoded picture as RGB, turned as its EXIF says; transparent parts become white.

    Raises:
        ValueError: saying what the bytes are not.
    """
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as picture:
            return _as_rgb(ImageOps.exif_transpose(picture))
    except _UNDECODABLE as error:
        raise _undecodable(data) from error


def recognise(data: bytes) -> None:
    """Look at the beginning of an encoded picture, which costs a tenth of decoding it.

    Raises:
        ValueError: as ``decode``, for what does not begin as a picture.
    """
    try:
        Image.open(io.BytesIO(data), formats=_FORMATS).close()
    except _UNDECODABLE as error:
        raise _undecodable(data) from error


def _undecodable(data: bytes) -> ValueError:
    return ValueError(
        f"cannot be decoded ({len(data)} bytes); expected a whole {', '.join(_FORMATS)} picture"
    )


def _as_rgb(picture: Image.Image) -> Image.Image:
    if picture.has_transparency_data:
        rgba = picture.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", rgba.size, "white"), rgba).convert("RGB")
    if picture.mode.startswith("I"):
        # of 16 bits: a plain conversion would cut everything above 255 to white
        return Image.fromarray((np.asarray(picture) >> 8).astype(np.uint8)).convert("RGB")
    return picture.convert("RGB")


def decode_all(
    rows: Sequence[Sequence[bytes]], on_error: Callable[[int, ValueError], Exception]
) -> torch.Tensor:
    """Decode every frame of every row and scale it to ``PICTURE_SIZE`` squared (aspect not kept).

    Args:
        rows: encoded frames of each row, equally many in all of them; a picture is one frame.
        on_error: makes the exception to raise from a row and what was wrong with it.

    Returns:
        uint8 [rows, frames, 3, PICTURE_SIZE, PICTURE_SIZE], RGB.
    """
    frames = len(rows[0]) if rows else 1
    pixels = np.empty((len(rows), frames, PICTURE_SIZE, PICTURE_SIZE, 3), dtype=np.uint8)

    def fill(start: int) -> None:
        for row in range(start, min(start + _CHUNK, len(rows))):
            try:
                for frame, data in enumerate(rows[row]):
                    pixels[row, frame] = scaled(data)
            except ValueError as error:
                raise on_error(row, error) from error

    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(fill, range(0, len(rows), _CHUNK)))
    return torch.from_numpy(pixels).permute(0, 1, 4, 2, 3).contiguous()


def scaled(data: bytes) -> npt.NDArray[np.uint8]:
    """One encoded picture at ``PICTURE_SIZE`` S, aspect not kept, uint8 [S, S, 3].

    Raises:
        ValueError: as ``decode``.
    """
    return np.asarray(decode(data).resize((PICTURE_SIZE, PICTURE_SIZE), Image.Resampling.BILINEAR))


def thumbnail(frames: Sequence[bytes]) -> bytes:
    """WebP of a picture with a longest side of at most 96 px; of a clip, a strip of four frames.

    A small WebP picture is handed through as it is. The frames of a strip are evenly spaced and each
    keeps to the limit, so that they can be recognised.
    """
    if len(frames) == 1 and _is_small_webp(frames[0]):
        return frames[0]
    chosen = [frames[k * len(frames) // STRIP_FRAMES] for k in range(STRIP_FRAMES)]
    pictures = [decode(data) for data in (chosen if len(frames) > 1 else frames)]
    for picture in pictures:
        picture.thumbnail((THUMBNAIL_SIZE, THUMBNAIL_SIZE))
    strip = Image.new("RGB", (sum(p.width for p in pictures), max(p.height for p in pictures)), "white")
    left = 0
    for picture in pictures:
        strip.paste(picture, (left, 0))
        left += picture.width
    buffer = io.BytesIO()
    strip.save(buffer, "WEBP", quality=80, method=2)
    return buffer.getvalue()


def _is_small_webp(data: bytes) -> bool:
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as picture:
            return picture.format == "WEBP" and max(picture.size) <= THUMBNAIL_SIZE
    except _UNDECODABLE:
        return False  # decoding says what is wrong
