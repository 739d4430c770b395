"""Scalars of TensorBoard event files, read without TensorBoard.

A file is a row of records: length (8 bytes), its checksum (4), a protocol buffer ``Event``, its checksum (4).
The fields that are read: Event.wall_time = 1, step = 2, summary = 5; Summary.value = 1; Value.tag = 1,
simple_value = 2, tensor = 8, metadata = 9; TensorProto.dtype = 1, shape = 2, content = 4, float_val = 5,
double_val = 6.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

_HEAD, _FOOT = struct.Struct("<QI"), struct.Struct("<I")
_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
_WIDTHS = {1: 8, 5: 4}
# Castagnoli, reflected
_POLYNOMIAL = 0x82F63B78
_TYPES = {1: (5, _FLOAT), 2: (6, _DOUBLE)}


class Scalar(NamedTuple):
    """One number: its tag, step, time in seconds since 1970, and value."""

    tag: str
    step: int
    wall_time: float
    value: float


@dataclass
class EventFile:
    """What a file holds.

    Attributes:
        scalars: in the order of the file.
        others: tags of what is no scalar.
        problem: why reading ended before the end of the file; empty where it did not.
    """

    scalars: list[Scalar] = field(default_factory=list)
    others: set[str] = field(default_factory=set)
    problem: str = ""


def read_event_file(path: Path) -> EventFile:
    """Read the scalars of a file up to its end, or to the first record that is cut off or damaged.

    Raises:
        OSError: if it cannot be read.
    """
    found, plugins = EventFile(), dict[str, bytes]()
    place = 0
    with path.open("rb") as file:
        while head := file.read(_HEAD.size):
            record = _record(head, file)
            try:
                # a checksum that fits leaves damage that was there when the record was written
                found.scalars += [] if record is None else list(_scalars(record, found.others, plugins))
            except (ValueError, struct.error, IndexError):
                record = None
            if record is None:
                found.problem = f"cut off or damaged after {place:,} bytes"
                break
            place = file.tell()
    return found


def _record(head: bytes, file: BinaryIO) -> bytes | None:
    """The record behind its head; None where a checksum does not fit or the file ends before it."""
    if len(head) < _HEAD.size:
        return None
    length, checksum = _HEAD.unpack(head)
    if masked_checksum(head[:8]) != checksum:
        return None
    record, foot = file.read(length), file.read(_FOOT.size)
    whole = len(record) == length and len(foot) == _FOOT.size
    return record if whole and _FOOT.unpack(foot)[0] == masked_checksum(record) else None


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (_POLYNOMIAL if byte & 1 else 0)  # noqa: PLW2901
        table.append(byte)
    return table


_TABLE = _table()


def masked_checksum(data: bytes) -> int:
    """CRC-32C, rotated and shifted as the format has it.

    Example:
        >>> masked_checksum(b"123456789") == (((0xE3069283 >> 15) | (0xE3069283 << 17)) + 0xA282EAD8) % 2**32
        True
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


_Fields = Iterator[tuple[int, int | bytes]]


def _fields(data: bytes) -> _Fields:
    """Number and content of each field of a message: an integer, or the bytes of anything else."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, place = _varint(data, place)
            yield number, value
            continue
        if wire == 2:
            width, place = _varint(data, place)
        elif wire in _WIDTHS:
            width = _WIDTHS[wire]
        else:
            raise ValueError(f"wire type {wire}")
        if place + width > len(data):
            raise ValueError("field beyond its message")
        yield number, data[place : place + width]
        place += width


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("integer instead of bytes")
    return value


def _scalars(event: bytes, others: set[str], plugins: dict[str, bytes]) -> Iterator[Scalar]:
    fields = list(_fields(event))
    content = dict(fields)
    step = int(content.get(2, 0))
    step -= 2**64 if step >= 2**63 else 0
    for _, summary in (entry for entry in fields if entry[0] == 5):
        for _, value in (entry for entry in _fields(_bytes(summary)) if entry[0] == 1):
            tag, number = _value(_bytes(value), plugins)
            if number is None:
                others.add(tag)
            else:
                yield Scalar(tag, step, _DOUBLE.unpack(_bytes(content.get(1, bytes(8))))[0], number)


def _value(value: bytes, plugins: dict[str, bytes]) -> tuple[str, float | None]:
    content = dict(_fields(value))
    tag = _bytes(content.get(1, b"")).decode()
    if 9 in content:
        plugin = dict(_fields(_bytes(dict(_fields(_bytes(content[9]))).get(1, b""))))
        # only the first value of a tag need say what shows it
        plugins[tag] = _bytes(plugin.get(1, b""))
    if 2 in content:
        return tag, _FLOAT.unpack(_bytes(content[2]))[0]
    if 8 in content and plugins.get(tag) == b"scalars":
        return tag, _tensor(_bytes(content[8]))
    return tag, None


def _tensor(tensor: bytes) -> float | None:
    """The number of a tensor of one float or double; None of any other."""
    content = dict(_fields(tensor))
    listed, kind = _TYPES.get(int(content.get(1, 0)), (0, _FLOAT))
    held = content.get(4) or content.get(listed)
    if not isinstance(held, bytes) or len(held) != kind.size:
        return None
    return float(kind.unpack(held)[0])
