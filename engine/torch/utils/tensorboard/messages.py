"""The few protocol buffer messages that TensorBoard's event files hold, as bytes.

A message is its fields one after the other: a key (field number and wire type), then the value. The field numbers are
those of TensorFlow's ``event.proto``, ``summary.proto`` and ``tensor.proto``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
FLOAT, DOUBLE, STRING = 1, 2, 7  # tensor.proto's DataType


def varint(number: int) -> bytes:
    """A number in groups of seven bits, the lowest first; negative ones are 64 bits wide."""
    number &= (1 << 64) - 1
    groups = bytearray()
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def whole(field: int, value: int) -> bytes:
    """An integer field."""
    return varint(field << 3 | VARINT) + varint(value)


def double(field: int, value: float) -> bytes:
    """A double field."""
    return varint(field << 3 | FIXED64) + struct.pack("<d", value)


def single(field: int, value: float) -> bytes:
    """A float field."""
    return varint(field << 3 | FIXED32) + struct.pack("<f", value)


def content(field: int, value: bytes) -> bytes:
    """A field that holds bytes, a text or a message."""
    return varint(field << 3 | BYTES) + varint(len(value)) + value


def doubles(field: int, values: Sequence[float]) -> bytes:
    """A packed list of doubles."""
    return content(field, struct.pack(f"<{len(values)}d", *values))


def event(wall_time: float, step: int | None, *, version: str = "", summary: bytes = b"") -> bytes:
    """An Event: seconds since 1970, the step, and either the file's version or a summary."""
    parts = [double(1, wall_time)]
    if step is not None:
        parts.append(whole(2, step))
    parts.append(content(3, version.encode()) if version else content(5, summary))
    return b"".join(parts)


def value(tag: str, kind: bytes, plugin: bytes = b"") -> bytes:
    """A Summary of one Value; ``plugin`` names the dashboard that shows it."""
    return content(1, content(1, tag.encode()) + kind + (content(9, content(1, plugin)) if plugin else b""))


def scalar(tag: str, number: float) -> bytes:
    """A Summary of one number."""
    return value(tag, single(2, number))


def tensor_scalar(tag: str, number: float, is_double: bool) -> bytes:
    """A Summary of one number in the newer form: a tensor for the scalars dashboard."""
    held = (
        whole(1, DOUBLE) + doubles(6, [number])
        if is_double
        else whole(1, FLOAT) + content(5, struct.pack("<f", number))
    )
    return value(tag, content(8, held), content(1, b"scalars"))


def text(tag: str, words: str) -> bytes:
    """A Summary of a text."""
    one = content(2, content(2, whole(1, 1)))  # a shape of one dim of size 1
    held = whole(1, STRING) + one + content(8, words.encode())
    return value(f"{tag}/text_summary", content(8, held), content(1, b"text") + content(2, b""))


def image(tag: str, height: int, width: int, channels: int, png: bytes) -> bytes:
    """A Summary of a picture."""
    return value(tag, content(4, whole(1, height) + whole(2, width) + whole(3, channels) + content(4, png)))


def histogram(tag: str, moments: Iterable[float], limits: Sequence[float], counts: Sequence[float]) -> bytes:
    """A Summary of a distribution.

    ``moments`` are min, max, number, sum and sum of squares; ``limits`` the right ends of the bins, ``counts`` what
    is in them.
    """
    facts = b"".join(double(number, moment) for number, moment in enumerate(moments, 1))
    return value(tag, content(5, facts + doubles(6, limits) + doubles(7, counts)))
