"""Keyframes: the machine's state every so often, so that no step is far from a known one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import msgspec
import zstandard

from stridescope.engine.recording.columns import DamagedBatch, as_tuples, decompress
from stridescope.engine.recording.content import Blob, Content
from stridescope.engine.recording.machine import Extra, Machine, extra_of, machine_from
from stridescope.engine.recording.model import OpState, State
from stridescope.engine.recording.store import INLINE

# A keyframe costs space and time by what is alive, the way from it by the events since: the more is alive, the
# rarer they are.
_EVENTS_APART = 1024
_EVENTS_PER_LIVE = 4
_LARGEST = 1 << 30


def is_due(machine: Machine, last: int) -> bool:
    """Whether a keyframe should follow the one at step ``last`` here."""
    live = len(machine.tensors.rows) + len(machine.storages.rows) + len(machine.nodes.rows)
    live += len(machine.allocator.blocks)
    return machine.step - last >= max(_EVENTS_APART, _EVENTS_PER_LIVE * live)


class _Keyframe(msgspec.Struct, array_like=True):
    state: State
    extra: Extra


def encode(machine: Machine, put: Callable[[bytes], bytes]) -> bytes | None:
    """Return the keyframe of a machine; ``put`` keeps bytes and returns their key.

    None where a text or number of the state has no portable form: the way is then folded from an earlier keyframe.
    """

    def hook(content: Any) -> Any:
        if content.key is not None:
            return (content.key, content.nbytes)
        values = content.read()
        return values if len(values) <= INLINE else (put(values), len(values))

    try:
        packed = msgspec.msgpack.encode(_Keyframe(machine.snapshot(), extra_of(machine)), enc_hook=hook)
    except (OverflowError, UnicodeEncodeError):
        return None
    return zstandard.ZstdCompressor(level=3).compress(packed)


def decoder(load: Callable[[bytes], bytes]) -> Callable[[bytes], Machine]:
    """Return the function that turns keyframes back into machines; ``load`` reads the bytes of a key."""

    def hook(kind: type, value: Any) -> Content:
        if isinstance(value, bytes):
            return Content(value, len(value))
        key, nbytes = value
        return Content(Blob(key, nbytes, load), nbytes)

    unpack = msgspec.msgpack.Decoder(_Keyframe, dec_hook=hook)

    def decode(data: bytes) -> Machine:
        try:
            keyframe = unpack.decode(decompress(data, _LARGEST))
        except (msgspec.MsgspecError, ValueError, TypeError) as error:
            raise DamagedBatch(f"a keyframe cannot be read ({error})") from error
        return _settled(keyframe)

    return decode


def _settled(keyframe: _Keyframe) -> Machine:
    """Give tuples back what arrived as lists, because the type only says "any"."""
    ops: list[OpState | None] = [*keyframe.state.ops, keyframe.state.op, keyframe.extra.last_op]
    for op in ops:
        if op is not None:
            op.arguments = as_tuples(list(op.arguments))
    for storage in keyframe.state.storages.values():
        if storage.summary is not None:
            storage.summary["histogram"] = as_tuples(storage.summary["histogram"])
    return machine_from(keyframe.state, keyframe.extra)


def store(database: sqlite3.Connection, machine: Machine, put: Callable[[bytes], bytes]) -> None:
    """Add a keyframe of this machine to a recording."""
    data = encode(machine, put)
    if data is not None:
        database.execute("INSERT OR REPLACE INTO keyframe VALUES (?, ?)", (machine.step, data))
