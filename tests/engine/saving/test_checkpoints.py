"""``torch.save`` and ``torch.load``; ``pytorch.pt`` was written by real PyTorch 2.13."""

from __future__ import annotations

import importlib.util
import io
import os
import pickle
import re
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

import stridescope.engine.torch as torch

_SPEC = importlib.util.spec_from_file_location("make_checkpoint", Path(__file__).with_name("make_checkpoint.py"))
assert _SPEC is not None and _SPEC.loader is not None
checkpoint: Any = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(checkpoint)


class Unknown:
    """A class that no list allows."""


class Command:
    """What a hostile file would hold."""

    def __reduce__(self) -> Any:
        return os.system, ("exit 3",)


def saved(value: Any) -> io.BytesIO:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return buffer


def described(value: Any) -> Any:
    """Everything one can see of a loaded value."""
    if isinstance(value, torch.Tensor):
        layout = (value.shape, value.stride(), value.storage_offset(), value.is_conj())
        return type(value), value.dtype, layout, value.requires_grad, value.tolist()
    if isinstance(value, dict):
        return {key: described(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [described(item) for item in value]
    return value


def test_a_file_of_pytorchs_loads_with_everything_in_it() -> None:
    loaded = torch.load(checkpoint.FILE)
    assert described(loaded) == described(checkpoint.contents(torch))
    assert loaded["view"].untyped_storage() is loaded["base"].untyped_storage()
    assert list(loaded["model"]._metadata) == ["", "0"]


def test_a_file_as_before_1_6_loads_with_everything_in_it() -> None:
    for options in ({}, {"weights_only": False}):
        loaded = torch.load(checkpoint.LEGACY, **options)
        assert described(loaded) == described(checkpoint.contents(torch))
        assert loaded["view"].untyped_storage() is loaded["base"].untyped_storage()
    moved = torch.load(checkpoint.LEGACY, map_location="cuda")
    assert moved["base"].device.type == "cuda" and moved["base"].tolist() == loaded["base"].tolist()
    assert torch.load(checkpoint.LEGACY, map_location=torch.device("meta"))["base"].is_meta


def test_legacy_files_are_written_too() -> None:
    buffer = io.BytesIO()
    torch.save(checkpoint.contents(torch), buffer, _use_new_zipfile_serialization=False)
    buffer.seek(0)
    assert described(torch.load(buffer)) == described(checkpoint.contents(torch))


@pytest.mark.parametrize(
    ("data", "kind", "text"),
    [
        (b"just text", RuntimeError, "Invalid magic number; corrupt file?"),
        (pickle.dumps({"a": 1}, 2), RuntimeError, "Invalid magic number; corrupt file?"),
        (b"", EOFError, "Ran out of input"),
        (checkpoint.LEGACY.read_bytes()[:-3], RuntimeError, "unexpected EOF, expected 3 more bytes"),
    ],
)
def test_what_is_no_checkpoint_is_refused(data: bytes, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        torch.load(io.BytesIO(data))


def test_the_oldest_format_is_refused_clearly(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "old.tar", "w") as tar:
        tar.add(__file__, "pickle")
    with pytest.raises(RuntimeError, match=r"legacy \.tar format"):
        torch.load(tmp_path / "old.tar")
    with pytest.raises(NotImplementedError, match=r"\.tar format .* is not in Stridescope yet"):
        torch.load(tmp_path / "old.tar", weights_only=False)


def test_only_zip_files_with_a_path_are_mapped(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        torch.load(checkpoint.LEGACY, mmap=True)
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        torch.load(io.BytesIO(checkpoint.FILE.read_bytes()), mmap=True)
    assert described(torch.load(checkpoint.FILE, mmap=True)) == described(checkpoint.contents(torch))


def test_our_file_holds_the_same_records_as_pytorchs(tmp_path: Path) -> None:
    path = tmp_path / "pytorch.pt"
    torch.save(checkpoint.contents(torch), path)
    with zipfile.ZipFile(path) as ours, zipfile.ZipFile(checkpoint.FILE) as theirs:
        assert ours.namelist() == theirs.namelist()
        for name in ours.namelist():
            if "/data/" in name or name.endswith(("version", "byteorder", "alignment")):
                assert ours.read(name) == theirs.read(name)
        begins = [info.header_offset + 30 + len(info.filename) + len(info.extra) for info in ours.infolist()]
    assert all(place % 64 == 0 for place in begins)


def test_what_the_pickle_names_is_pytorchs() -> None:
    with zipfile.ZipFile(saved(checkpoint.contents(torch))) as archive:
        text = archive.read("archive/data.pkl")
    assert b"ctorch._utils\n_rebuild_tensor_v2\n" in text
    assert b"stridescope" not in text


def test_shared_storage_is_saved_once_and_shared_again() -> None:
    base = torch.zeros(4)
    first, second = torch.load(saved([base[:2], base]))
    first.fill_(7)
    assert second.tolist() == [7, 7, 0, 0]


def test_a_class_is_refused_until_it_is_allowed() -> None:
    with pytest.raises(pickle.UnpicklingError, match="Unsupported global: GLOBAL .*Unknown was not an allowed global"):
        torch.load(saved(Unknown()))
    with torch.serialization.safe_globals([Unknown]):
        assert isinstance(torch.load(saved(Unknown())), Unknown)
    assert isinstance(torch.load(saved(Unknown()), weights_only=False), Unknown)


def test_a_hostile_file_runs_nothing() -> None:
    with pytest.raises(pickle.UnpicklingError, match="module posix is blocked"):
        torch.load(saved(Command()))


def test_opcodes_beyond_those_of_checkpoints_are_refused() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps([1], protocol=4))
    buffer.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="Unsupported operand 149"):
        torch.load(buffer)


@pytest.mark.parametrize("place", ["cpu", torch.device("cpu"), {"cpu": "cpu"}, lambda storage, location: storage])
def test_map_location_takes_every_form(place: Any) -> None:
    assert torch.load(saved(torch.ones(2)), map_location=place).device.type == "cpu"


def test_whole_modules_come_back() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    again = torch.load(saved(model), weights_only=False)
    assert repr(again) == repr(model)
    assert torch.equal(again[0].weight, model[0].weight)


def test_files_that_are_none() -> None:
    with pytest.raises(EOFError):
        torch.load(io.BytesIO())
    with pytest.raises(RuntimeError, match="PytorchStreamReader failed reading zip archive"):
        torch.load(io.BytesIO(b"PK\x03\x04nothing"))
    with pytest.raises(RuntimeError, match="Invalid magic number; corrupt file"):
        torch.load(io.BytesIO(b"\x80\x02old"))
    with pytest.raises(RuntimeError, match="Parent directory .* does not exist"):
        torch.save(1, "no/such/folder/file.pt")
