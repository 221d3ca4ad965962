"""What the tracer knows of the user's code objects, and of the calls of them that are running."""

from __future__ import annotations

import types

from stridescope.engine.worker.frame_locals import OPTIMIZED, Locals, Values, layout_of, lies_at
from stridescope.engine.worker.names import Bound, Names, plan, worth_showing
from stridescope.engine.worker.positions import Where, lines_after, spans_of

Span = tuple[int, int, int, int]


class Code:
    """What the tracer knows of a code object of the user's files."""

    __slots__ = (
        "arguments", "asked", "calls", "compiled", "first_line", "flow", "free_calls", "is_module", "layout", "name",
        "names", "object", "optimized", "plan", "quiet", "resuming", "silent", "source", "spans", "starts",
        "unfollowed", "visits", "watched", "woken",
    )  # fmt: skip

    def __init__(self, code: types.CodeType, source: int, compiled: types.CodeType | None = None) -> None:
        """``compiled`` is what the compiler made, where ``code`` has more in it."""
        self.object, self.source, self.compiled = code, source, compiled or code
        self.optimized = bool(code.co_flags & OPTIMIZED)  # a function, not a module or a class body
        self.layout = layout_of(code) if self.optimized else None
        places = {} if self.layout is None else self.layout.places
        # Where rationing sets in, `names` becomes a copy of the plan.
        self.plan = self.names = {line: names.placed(places) for line, names in plan(self.compiled).items()}
        self.is_module, self.name = code.co_name == "<module>", code.co_qualname
        self.first_line = code.co_firstlineno
        arguments = filter(worth_showing, code.co_varnames[: _argument_count(code)])
        self.arguments = tuple((name, places.get(name, -1)) for name in arguments)  # with their slots, where known
        self.spans: list[Span] = []
        self.starts: dict[int, int] = {}  # the instructions that begin a line, and which, where a watch asks for them
        self.visits: dict[int, int] = {}  # how often each line was reached, estimated by samples
        self.silent: set[int] = set()  # the lines that are not recorded
        self.unfollowed: dict[str, None] = {}  # names that rationed lines store, looked at when another line is reached
        self.flow: dict[int, set[int]] = {}  # the lines that can follow on each, found when one is rationed
        self.resuming: set[int] = set()  # lines that can follow on rationed ones
        self.calls, self.asked, self.quiet = 0, 0, False  # how often it was called since an op ran; not recorded?
        self.free_calls, self.woken = 0, False  # how often in a row it ran no op itself; did it, when not recorded?
        self.watched = False  # a watch's own note: does it report the lines of this code?

    def ration(self, line: int) -> None:
        """Take note that a line is rationed: at those that can come next the names that it stores are looked at."""
        self.flow = self.flow or lines_after(self.compiled)
        self.resuming |= self.flow.get(line, set())

    def lift(self) -> None:
        """Take note that no line is rationed any more: running calls come from anywhere."""
        self.names, self.quiet, self.calls, self.free_calls = self.plan, False, 0, 0
        self.visits.clear()
        self.silent.clear()
        if self.unfollowed:
            self.resuming = {line for _, _, line in self.compiled.co_lines() if line}

    def read_spans(self) -> list[Span]:
        """Decode the positions when the first op asks for one."""
        self.spans = spans_of(self.object)
        return self.spans


class Call:
    """A live frame of the user's files, and what was last told of its names."""

    __slots__ = (
        "asked", "base", "changing", "code", "id", "known", "lies", "line", "places", "plain", "space", "todo",
        "values",
    )  # fmt: skip

    def __init__(self, number: int, code: Code, frame: types.FrameType) -> None:
        self.id, self.code, self.asked = number, code, 0
        self.line = 0  # the last line, where lines are told by their instructions
        # A module's or class body's own dict, taken now: in the midst of a comprehension f_locals shows its names only.
        self.space: Locals | None = None if code.optimized else frame.f_locals
        self.todo: Names | None = None  # the names of the line that runs now, looked at when the next is reached
        self.known: dict[str, Bound] = {}  # what was told of names that stand for no small value
        self.places: dict[int, Where] = {}  # by instruction: where its ops are recorded to be
        self.plain: dict[str, object] = {}  # the small values that were told, themselves
        self.changing: set[str] = set()  # names whose value can change in place
        if (layout := code.layout) is not None:
            self.lies = lies = lies_at(frame)
            self.base = base = lies.value or 0
            self.values = layout.seen.get(base) or layout.values_at(base)

    def see(self) -> Values:
        """Return the slots with the frame's locals, where these can be read in place.

        Until the frame moves (:attr:`lies` says where it is) they are the same :attr:`values`.
        """
        assert self.code.layout is not None
        self.base = self.lies.value or 0
        self.values = self.code.layout.values_at(self.base)
        return self.values


def _argument_count(code: types.CodeType) -> int:
    stars = bool(code.co_flags & 4) + bool(code.co_flags & 8)  # CO_VARARGS, CO_VARKEYWORDS
    return code.co_argcount + code.co_kwonlyargcount + stars
