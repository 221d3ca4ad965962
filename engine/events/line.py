"""Line events: what Python does."""

from __future__ import annotations

from stridescope.engine.events.base import Event


class SourceSeen(Event, family="line"):
    """The file {path} is part of this run."""

    source: int
    path: str


class FrameEntered(Event, family="line"):
    """{function} is called."""

    frame: int
    parent: int
    source: int
    function: str
    line: int


class FrameLeft(Event, family="line"):
    """The call returns."""

    frame: int


class LineReached(Event, family="line"):
    """Line {line} is about to run."""

    frame: int
    source: int
    line: int


class LineRationed(Event, family="line"):
    """Line {line} runs very often without any op: from here on it is not recorded every time."""

    source: int
    line: int


class NameBound(Event, family="line"):
    """The name {name} now stands for {text}."""

    frame: int
    name: str
    tensor: int
    text: str


class ModuleNamed(Event, family="line"):
    """The name {name} now stands for a module."""

    frame: int
    name: str
    module: int


class NameUnbound(Event, family="line"):
    """The name {name} is gone."""

    frame: int
    name: str


class OutputWritten(Event, family="line"):
    """The script printed: {text}"""

    stream: int
    text: str


class ExceptionRaised(Event, family="line"):
    """{kind}: {message}"""

    frame: int
    source: int
    line: int
    column: int
    end_line: int
    end_column: int
    kind: str
    message: str


class ScriptEnded(Event, family="line"):
    """The script ended with status {status}."""

    status: int


class RecordingCut(Event, family="line"):
    """The recording stopped here: {reason}"""

    reason: str
