"""Messages survive the wire in any pieces; bytes that are none are refused."""

from __future__ import annotations

import dataclasses
from typing import Any, get_args

import pytest

from stridescope.engine.worker import protocol
from stridescope.engine.worker.protocol import MESSAGES, Inbox, ProtocolError, pack, unpack

SAMPLES = {
    "str": "text é",
    "int": 7,
    "bool": True,
    "tuple[str, ...]": ("a", "b"),
    "tuple[Breakpoint, ...]": (protocol.Breakpoint(path="x.py", line=3, condition="i > 1"),),
    "tuple[int, ...]": (3, 0),
    "tuple[Part, ...]": (protocol.Part("[0]", "tensor", 5, 0), protocol.Part(".body", "<Body>", 0, 4)),
    "Breakpoint": protocol.Breakpoint(kind="op", op="add"),
    "Grain": "op",
    "Mode": "into",
}


def sample(kind: type[Any]) -> Any:
    """A message with no field as it is by default."""
    return kind(*(SAMPLES[str(field.type)] for field in dataclasses.fields(kind)))


@pytest.mark.parametrize("kind", MESSAGES.values())
def test_every_message_comes_out_as_it_went_in(kind: type[Any]) -> None:
    message = sample(kind)
    wire = pack(message)
    inbox = Inbox()
    assert [found for byte in wire for found in inbox.feed(bytes([byte]))] == [message]
    assert list(inbox.feed(wire + wire)) == [message, message]


def test_every_message_is_a_command_or_a_reply() -> None:
    assert set(MESSAGES.values()) == {*get_args(protocol.Command), *get_args(protocol.Reply)}


@pytest.mark.parametrize("body", [b"", b"\xff", b'["Run", {}]', pack(protocol.Run())[4:].replace(b"Run", b"Fun")])
def test_other_bytes_are_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError, match="no message of this version"):
        unpack(body)
