"""What the window and the worker say to each other: commands one way, small replies the other.

Data never travels here; it goes into the recording. A message on the wire is its length in four bytes, then the
message's name and its fields as MessagePack. Both sides are listed at the end.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

Grain = Literal["line", "op", "event"]
Mode = Literal["into", "over", "out"]
LENGTH = struct.Struct("!I")
PARTS_RECORDED = 32  # the most tensors that the recording names inside one container or Module


class ProtocolError(Exception):
    """The other side sent something that is no message of ours."""


# ---- what the window asks --------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Breakpoint:
    """Where or when to stop.

    ``kind`` is ``"line"`` (``path`` and ``line``), ``"op"`` (``op``, a name such as ``add`` or ``aten::add``),
    ``"tensor"`` (``change`` is one of written, viewed, grad, freed) or the name of a predicate of
    :mod:`stridescope.engine.worker.breakpoints`, with ``number`` as its limit. A tensor is known by where it was born,
    which holds in the next run too: the ``number``-th that was made on ``line`` of ``path``, and people call it
    ``name``; without a line, ``number`` is its id in this run. A ``condition`` is a Python expression over the
    script's variables; ``skip`` is the number of hits to let pass.
    """

    kind: str = "line"
    path: str = ""
    line: int = 0
    op: str = ""
    change: str = ""
    number: int = 0
    name: str = ""
    condition: str = ""
    skip: int = 0
    enabled: bool = True


@dataclasses.dataclass(frozen=True)
class Start:
    """Run this program; the first command, once.

    ``memory_limit`` is in bytes, 0 for none; ``every_line`` records every round of the longest loop, at its price.
    With ``until_step`` the script first stops at that step: a script that does the same each time goes on from a
    moment of its last run. ``step_into`` names packages whose Python is recorded like the user's own, even ``torch``.
    ``folder`` is where it runs, "" where the window was started.
    """

    path: str
    argv: tuple[str, ...] = ()
    module: bool = False
    folder: str = ""
    recording: str = ""
    device: str = "auto"
    keep_values: int = 1 << 16
    break_on_start: bool = True
    break_on_error: bool = True
    memory_limit: int = 0
    every_line: bool = False
    until_step: int = 0
    step_into: tuple[str, ...] = ()
    breakpoints: tuple[Breakpoint, ...] = ()


@dataclasses.dataclass(frozen=True)
class Step:
    """Go to the next stop of a grain: ``over`` stays level, ``into`` goes one level deeper, ``out`` leaves."""

    grain: Grain = "line"
    mode: Mode = "over"


@dataclasses.dataclass(frozen=True)
class RunTo:
    """Run until a line is reached, or another breakpoint."""

    path: str
    line: int


@dataclasses.dataclass(frozen=True)
class RunUntil:
    """Run until the next of something: a breakpoint that is good for once."""

    breakpoint: Breakpoint


@dataclasses.dataclass(frozen=True)
class Run:
    """Run until a breakpoint or the end."""


@dataclasses.dataclass(frozen=True)
class Pause:
    """Stop as soon as possible."""


@dataclasses.dataclass(frozen=True)
class Stop:
    """End the script now; the recording is kept."""


@dataclasses.dataclass(frozen=True)
class SetBreakpoints:
    """These are the breakpoints from now on."""

    breakpoints: tuple[Breakpoint, ...]


@dataclasses.dataclass(frozen=True)
class SendInput:
    """Text for the script's standard input; ``end`` closes it."""

    text: str
    end: bool = False


@dataclasses.dataclass(frozen=True)
class Evaluate:
    """Evaluate or execute a text in the frame where the script stands, ``level`` frames of the user's further out.

    What the console does is ``recorded``; a watch is an expression that is not.
    """

    number: int
    text: str
    level: int = 0
    recorded: bool = True


@dataclasses.dataclass(frozen=True)
class Inspect:
    """Ask what is inside a value of the frame where the script stands, one level deep.

    ``expression`` is a name, ``path`` the numbers of the parts that lead further in: containers and Modules open part
    by part, ``count`` of them from ``first`` on, so that a list of any length costs what is looked at.
    """

    number: int
    expression: str
    path: tuple[int, ...] = ()
    first: int = 0
    count: int = 100
    level: int = 0


@dataclasses.dataclass(frozen=True)
class Complete:
    """Ask how a half-written text could go on, in the same frame as :class:`Evaluate`."""

    number: int
    text: str
    level: int = 0


# ---- what the worker answers -----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Running:
    """The script runs."""

    process: int


@dataclasses.dataclass(frozen=True)
class Stopped:
    """The script waits; ``step`` is the last event of the recording, which is complete up to there.

    ``reason`` is start, step, breakpoint, pause, error; ``detail`` says more where there is more.
    """

    step: int
    reason: str
    detail: str = ""


@dataclasses.dataclass(frozen=True)
class Counted:
    """How often each of these breakpoints was met so far; told before :class:`Stopped`, when there are any."""

    breakpoints: tuple[Breakpoint, ...]
    hits: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Busy:
    """A pause is wanted, but the script is inside something that cannot be interrupted; it stops right after."""

    text: str = "the script is inside a call that cannot be interrupted; it stops right after it"


@dataclasses.dataclass(frozen=True)
class InputWanted:
    """The script waits for its standard input."""


@dataclasses.dataclass(frozen=True)
class Evaluated:
    """The answer to :class:`Evaluate`: the value's text, or with ``ok`` False the error's."""

    number: int
    text: str
    ok: bool
    step: int


@dataclasses.dataclass(frozen=True)
class Part:
    """Something inside a value: the step that leads to it, its text, its tensor's id, how many parts it has itself."""

    step: str
    text: str
    tensor: int = 0
    parts: int = 0


@dataclasses.dataclass(frozen=True)
class Inspected:
    """The answer to :class:`Inspect`: the parts asked for, and how many there are in all."""

    number: int
    parts: tuple[Part, ...]
    total: int


@dataclasses.dataclass(frozen=True)
class Completed:
    """The answer to :class:`Complete`: whole names that fit."""

    number: int
    names: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Ended:
    """The script is over. ``reason`` is finished, stopped, memory or, told by the client, killed or refused."""

    status: int
    reason: str = "finished"


@dataclasses.dataclass(frozen=True)
class Failed:
    """The script could not be started, or a command was refused."""

    message: str


Command = (
    Start | Step | RunTo | RunUntil | Run | Pause | Stop | SetBreakpoints | SendInput | Evaluate | Complete | Inspect
)
Reply = Running | Stopped | Counted | Busy | InputWanted | Evaluated | Completed | Inspected | Ended | Failed
MESSAGES: dict[str, type[Any]] = {kind.__name__: kind for kind in (*Command.__args__, *Reply.__args__)}


def pack(message: Command | Reply) -> bytes:
    """Return a message as it goes over the wire."""
    body = msgspec.msgpack.encode((type(message).__name__, message))
    return LENGTH.pack(len(body)) + body


def unpack(body: bytes) -> Any:
    """Return the message that stands in the bytes after a length."""
    try:
        name, fields = msgspec.msgpack.decode(body, type=tuple[str, msgspec.Raw])
        return msgspec.msgpack.decode(fields, type=MESSAGES[name])
    except (msgspec.DecodeError, KeyError) as error:
        raise ProtocolError(f"the bytes are no message of this version of Stridescope: {error}") from None


class Inbox:
    """Puts messages together from pieces of the wire."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, piece: bytes) -> Iterator[Any]:
        """Take a piece and yield the messages that are complete now."""
        self._bytes += piece
        while (body := self._next()) is not None:
            yield unpack(body)

    def _next(self) -> bytes | None:
        if len(self._bytes) < LENGTH.size:
            return None
        (length,) = LENGTH.unpack_from(self._bytes)
        end = LENGTH.size + length
        if len(self._bytes) < end:
            return None
        body = bytes(self._bytes[LENGTH.size : end])
        del self._bytes[:end]
        return body
