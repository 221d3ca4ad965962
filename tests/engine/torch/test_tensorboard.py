"""Event files for TensorBoard: records, checksums and what stands in them, read by a reader of this test's own."""

from __future__ import annotations

import pathlib
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import stridescope.engine.torch as torch
from stridescope.engine.torch.utils.tensorboard import SummaryWriter
from stridescope.engine.torch.utils.tensorboard.records import crc32c, masked


def number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
        if byte < 128:
            return value, at


def fields(data: bytes) -> dict[int, list[Any]]:
    """The fields of a message: integers, 4 or 8 bytes, or bytes."""
    found: dict[int, list[Any]] = {}
    at = 0
    while at < len(data):
        key, at = number(data, at)
        if key & 7 == 0:
            value, at = number(data, at)
        else:
            size, at = number(data, at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
            value, at = data[at : at + size], at + size
        found.setdefault(key >> 3, []).append(value)
    return found


def records(path: pathlib.Path) -> Iterator[dict[int, list[Any]]]:
    data = path.read_bytes()
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        assert data[8:12] == masked(data[:8])
        body, data = data[12 : 12 + length], data[12 + length :]
        assert data[:4] == masked(body)
        yield fields(body)
        data = data[4:]


def summaries(folder: pathlib.Path) -> list[tuple[int, dict[int, list[Any]]]]:
    """Steps and values of the one event file in a folder."""
    (path,) = [p for p in folder.iterdir() if p.name.startswith("events.out.tfevents.")]
    first, *events = records(path)
    assert first[3] == [b"brain.Event:2"]
    return [(event.get(2, [0])[0], fields(fields(event[5][0])[1][0])) for event in events]


def test_checksums_are_castagnolis() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # the check value of CRC-32C
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, appendix B.4


def test_scalars(tmp_path: pathlib.Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        for step in range(3):
            writer.add_scalar("Loss/train", torch.tensor(1.5 / (step + 1)), step)
        writer.add_scalar("negative", np.float64(-1), -3)
    found = summaries(tmp_path)
    assert [(step, v[1], struct.unpack("<f", v[2][0])) for step, v in found] == [
        (0, [b"Loss/train"], (1.5,)), (1, [b"Loss/train"], (0.75,)), (2, [b"Loss/train"], (0.5,)),
        ((1 << 64) - 3, [b"negative"], (-1.0,)),
    ]  # fmt: skip
    with pytest.raises(AssertionError, match="Tensor should contain one element"):
        writer.add_scalar("many", torch.ones(2))


def test_several_scalars_have_files_of_their_own(tmp_path: pathlib.Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalars("run/x", {"a": 1.0, "b": 2.0}, 5)
    for name, value in (("a", 1.0), ("b", 2.0)):
        ((step, found),) = summaries(tmp_path / f"run_x_{name}")
        assert (step, found[1], struct.unpack("<f", found[2][0])) == (5, [b"run/x"], (value,))


def test_a_text(tmp_path: pathlib.Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_text("note", "héllo", 1)
    ((_, found),) = summaries(tmp_path)
    assert found[1] == [b"note/text_summary"]
    assert fields(found[8][0])[8] == ["héllo".encode()]
    assert fields(fields(found[9][0])[1][0])[1] == [b"text"]


def test_a_histogram_counts_every_value(tmp_path: pathlib.Path) -> None:
    values = torch.linspace(-1, 2, 50)
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("h", values, 2)
        with pytest.raises(ValueError, match="The input has no element"):
            writer.add_histogram("h", torch.ones(0))
    ((_, found),) = summaries(tmp_path)
    histogram = fields(found[5][0])
    least, most, count = (struct.unpack("<d", histogram[n][0])[0] for n in (1, 2, 3))
    limits, counts = (np.frombuffer(histogram[n][0], "<f8") for n in (6, 7))
    assert (least, most, count, counts.sum(), counts[0], len(limits)) == (-1, 2, 50, 50, 0, len(counts))
    for low, high, inside in zip(limits, limits[1:], counts[1:], strict=False):
        assert inside == ((values.numpy() >= low) & (values.numpy() < high)).sum()


def test_pictures(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("PIL")
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("one", torch.ones(3, 4, 5), 1)
        writer.add_images("many", torch.zeros(10, 1, 4, 6), 2)
    one, many = (fields(found[4][0]) for _, found in summaries(tmp_path))
    assert (one[1], one[2], one[3]) == ([4], [5], [3])
    assert (many[1], many[2], many[3]) == ([8], [48], [3])
    assert one[4][0].startswith(b"\x89PNG")


def test_what_is_not_here_says_so(tmp_path: pathlib.Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        text = "torch.utils.tensorboard.SummaryWriter.add_graph is not in Stridescope yet"
        with pytest.raises(NotImplementedError, match=f"^{text}$"):
            writer.add_graph(torch.nn.Linear(1, 1))
        with pytest.raises(AttributeError):
            _ = writer.nonsense
