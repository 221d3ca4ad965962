"""The gate: where the script waits between two events, until the window says how to go on.

While the script runs freely the gate is not there at all: ``journal.emit`` is the recording's own. It is put in
between only for a step, a breakpoint or a pause.
"""

from __future__ import annotations

import _thread
import contextlib
import dataclasses
import inspect
import os
import queue
import signal
import sys
import threading
import time
import types
from collections.abc import Callable, Sequence
from typing import Any

from stridescope.engine import events
from stridescope.engine.autograd.relay import Relay
from stridescope.engine.events import Wire, grains, journal
from stridescope.engine.worker import protocol
from stridescope.engine.worker.breakpoints import Armed, BreakpointError, Past
from stridescope.engine.worker.calls import Call
from stridescope.engine.worker.console import Console
from stridescope.engine.worker.protocol import Breakpoint, Busy, Failed, Reply, Running, Stopped
from stridescope.engine.worker.tracebacks import entries
from stridescope.engine.worker.tracer import Tracer

LINES, OPS, DECISIONS = (grains.codes(kinds) for kinds in (grains.LINES, grains.OPS, grains.DECISIONS))
GRAINS = {grain: grains.codes(kinds) for grain, kinds in grains.GRAINS.items()}
OPENERS, CLOSERS = OPS, grains.codes(grains.CLOSERS)
# Sent to the main thread to pause a script that emits nothing. Whoever resets it does no harm: its default is nothing.
NUDGE: signal.Signals = signal.SIGBREAK if os.name == "nt" else signal.SIGURG  # type: ignore[attr-defined]
PATIENCE = 0.15  # seconds in which a paused script may reach an event by itself
BUSY_AFTER = 0.25  # seconds after the nudge when the window is told that the script cannot be interrupted

ASKING = (protocol.Evaluate, protocol.Complete, protocol.Inspect)  # what leaves the script where it stands

Depth = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Goal:
    """Where a step ends: at an event of these kinds, in this thread, no deeper and no earlier than this.

    ``home`` is a coroutine's call with the id of its frame: the step does not end in another one while that lives.
    """

    codes: frozenset[int]
    reason: str = "step"
    thread: int = 0
    deepest: Depth | None = None
    step: int = 0
    home: tuple[int, Call] | None = None


class Stepper:
    """Stops the script at events and serves the window's commands while it waits."""

    def __init__(self, tracer: Tracer, flush: Callable[[], int], reply: Callable[[Reply], None]) -> None:
        self._tracer, self._flush, self._reply = tracer, flush, reply
        self._commands: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._turn = threading.RLock()
        self._points: list[Armed] = []
        self._goal: Goal | None = None
        self._pausing = False
        self._held = False
        self._resuming = False  # a command that lets the script go on is on its way to it
        self._stopped, self._asked_to_pause = threading.Event(), threading.Event()
        self._level = 0  # how many ops and nodes the script is inside of, counted from where the gate was put in
        self._count = 0  # the step of the last event, while a goal asks for one
        self._last = 0  # the kind of the event where the script stands
        self._standing = 0  # the thread that waits for the window's commands
        self._raw: Callable[[Wire], object] = _nobody
        self._ours: frozenset[int] = frozenset()
        self.console = Console(tracer)

    def install(self) -> None:
        """Take the place before the recording; called in the main thread, when only our own threads run beside it."""
        self._raw = journal.emit or _nobody
        threading.Thread(target=self._see_to_pauses, name="stridescope-pause", daemon=True).start()
        self._ours = frozenset(thread.ident or 0 for thread in threading.enumerate()) - {threading.get_ident()}
        journal.where = self._tracer.positions.where
        signal.signal(NUDGE, self._nudged)
        sys.breakpointhook = self._called
        self._choose()

    # ---- asked by the window, in the reader's thread -----------------------------------------------------------

    def ask(self, command: Any) -> None:
        """Hand a command to the script's thread, where it is served while the script waits."""
        if self._stopped.is_set():
            self._resuming = self._resuming or not isinstance(command, ASKING)
            self._commands.put(command)
        else:
            self._reply(Failed(f"{type(command).__name__} needs a script that waits; this one is running"))

    def break_at(self, breakpoints: Sequence[Breakpoint], past: Past) -> None:
        """These are the breakpoints from now on; those that were there keep their counts."""
        counted = {point.breakpoint: point for point in self._points}
        points: list[Armed] = []
        for breakpoint in breakpoints:
            if breakpoint.enabled:
                try:
                    points.append(counted.get(breakpoint) or Armed(breakpoint, past))
                except BreakpointError as error:
                    self._reply(Failed(str(error)))
        self._points = points
        self._choose()

    def break_at_start(self) -> None:
        """Stop at the first line."""
        self._goal = Goal(LINES, "start")
        self._choose()

    def run_to_step(self, step: int) -> None:
        """Stop at a step of an earlier run of the same script; called before its first line."""
        self._count = self._flush() - 1
        self._goal = Goal(DECISIONS, step=step)
        self._choose()

    def pause(self) -> None:
        """Stop at the next event; when none comes, wherever Python is; when that cannot be, say so."""
        if self._stands():
            self.console.interrupt()
            return
        self._pausing = True
        self._choose()
        self._asked_to_pause.set()

    def hold(self) -> None:
        """Hold the script where it is, for good: its process is about to end."""
        self._held = True
        if journal.emit is not None:
            journal.divert(self._pass, bundles=False)
        _nudge()

    def _see_to_pauses(self) -> None:
        """Insist on each pause, in a thread of its own: none can be started once the script's main thread is done."""
        while self._asked_to_pause.wait():
            self._asked_to_pause.clear()
            self._insist()

    def _insist(self) -> None:
        if self._comes_to_stand(PATIENCE):
            return
        _nudge()
        if not self._comes_to_stand(BUSY_AFTER) and self._pausing:
            self._reply(Busy())

    def _stands(self) -> bool:
        """Say whether the script waits and is to go on waiting."""
        return self._stopped.is_set() and not self._resuming

    def _comes_to_stand(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while not self._stands() and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 0.01))
        return self._stands()

    def _nudged(self, *_: object) -> None:
        if self._held and not self._stopped.is_set():
            _wait_for_the_end()
        if self._pausing and not self._stopped.is_set():
            self._wait("pause")

    def _called(self, *_: object, **__: object) -> None:
        """Stop where the script itself calls ``breakpoint()``."""
        if not self._stopped.is_set():
            self._last = events.LineReached.code
            self._wait("breakpoint", "breakpoint()")

    # ---- the gate, in the script's threads ---------------------------------------------------------------------

    def _choose(self) -> None:
        """Put the gate in when something can stop the script, else take it out."""
        if journal.emit is not None:
            watched = bool(self._pausing or self._goal or self._points)
            self._tracer.record_every_line(watched)
            journal.divert(self._pass if watched else self._raw, bundles=not watched)

    def _pass(self, wire: Wire) -> None:
        """Record an event, and wait when it is one to stop at.

        One thread of the script at a time: others wait here while one is judged and while it stands. Our own threads
        (events come from them when they happen to collect garbage) never wait.
        """
        if (thread := Relay.origin()) in self._ours:
            self._raw(wire)
            self._count += 1
            return
        if self._held:
            _wait_for_the_end()
        with contextlib.nullcontext() if thread == self._standing else self._turn:
            self._raw(wire)
            self._count += 1
            met = [point for point in self._points if point.test(wire)]  # each of them follows every event
            if wire[0] in DECISIONS and not self._stopped.is_set():
                self._judge(wire, met, thread)

    def _judge(self, wire: Wire, met: Sequence[Armed], thread: int) -> None:
        code = wire[0]
        if code in CLOSERS:
            self._level -= 1
        if (why := self._reason(wire, met, thread)) is not None:
            self._last = code
            self._wait(*why)
        if code in OPENERS:
            self._level += 1

    def _reason(self, wire: Wire, met: Sequence[Armed], thread: int) -> tuple[str, str] | None:
        if self._pausing:
            return "pause", ""
        if self._goal is not None and self._is_reached(self._goal, wire[0], thread):
            return self._goal.reason, ""
        details = (self._hit(point, wire) for point in met)
        return next((("breakpoint", detail) for detail in details if detail is not None), None)

    def _is_reached(self, goal: Goal, code: int, thread: int) -> bool:
        there = code in goal.codes and goal.thread in (0, thread) and self._count >= goal.step
        return there and self._shallow(goal.deepest) and self._is_at_home(goal.home)

    def _hit(self, point: Armed, wire: Wire) -> str | None:
        """Return what to say of a breakpoint whose test is true, None when it does not stop after all."""
        if point.path and self._tracer.real_path(wire[2]) != point.path:
            return None
        detail = str(point)
        if point.condition is not None:
            frame = self._tracer.positions.user_frame(sys._getframe(1))
            is_met, problem = self.console.is_met(frame, point.condition)
            if not is_met:
                return None
            detail = problem or detail
        if not point.counts():
            return None
        if point.once:
            self._points.remove(point)
        return detail

    def _shallow(self, deepest: Depth | None) -> bool:
        return deepest is None or (self._tracer.positions.depth(sys._getframe(1)), self._level) <= deepest

    def _is_at_home(self, home: tuple[int, Call] | None) -> bool:
        """Say whether a coroutine runs that a step is to stay in; when it has ended, anywhere will do."""
        if home is None or self._tracer.calls.get(home[0]) is not home[1]:
            return True
        frame = self._tracer.positions.user_frame(sys._getframe(1))
        return frame is not None and id(frame) == home[0]

    def fail(self, error: BaseException) -> None:
        """Stop after an exception that nobody handled: one can look around in the frames that it left."""
        left = [entry.tb_frame for entry in entries(error.__traceback__)]
        frames = [frame for frame in left if self._tracer.code_of(frame.f_code) is not None]
        self._wait("error", f"{type(error).__name__}: {error}", frames[::-1])

    def _wait(self, reason: str, detail: str = "", frames: Sequence[types.FrameType] = ()) -> None:
        """Wait for the window and serve its commands."""
        with self._turn:
            self._goal, self._pausing, self._standing = None, False, Relay.origin()
            self._points = [point for point in self._points if not point.once]
            self._stopped.set()
            if self._points:
                hits = [(point.breakpoint, point.hits) for point in self._points]
                self._reply(protocol.Counted(*map(tuple, zip(*hits, strict=True))))
            self._reply(Stopped(self._flush() - 1, reason, detail))
            standing = list(frames) or list(self._tracer.positions.user_frames(sys._getframe(1)))
            while not self._serve(self._commands.get(), standing):
                pass
            self._stopped.clear()
            self._standing = 0
            self._resuming = False
            self._choose()
            self._reply(Running(os.getpid()))

    def _serve(self, command: Any, frames: Sequence[types.FrameType]) -> bool:
        """Serve a command; return whether the script goes on."""
        match command:
            case protocol.Evaluate(number, text, level, recorded):
                evaluate = self.console.evaluate if recorded else self.console.watch
                value, ok = evaluate(_at(frames, level), text)
                self._reply(protocol.Evaluated(number, value, ok, self._flush() - 1))
            case protocol.Complete(number, text, level):
                self._reply(protocol.Completed(number, self.console.complete(_at(frames, level), text)))
            case protocol.Inspect():
                self._reply(self.console.inspect(_at(frames, command.level), command))
            case protocol.Step(grain, mode):
                self._goal = self._step(grain, mode, frames)
                return True
            case protocol.RunTo(path, line):
                return self._arm_once(Breakpoint(path=path, line=line))
            case protocol.RunUntil(breakpoint):
                return self._arm_once(breakpoint)
            case protocol.Run():
                return True
        return False

    def _arm_once(self, breakpoint: Breakpoint) -> bool:
        """Arm a breakpoint that is good for once; return False, having said why, when it cannot be."""
        try:
            point = Armed(breakpoint, self.past)
        except BreakpointError as error:
            self._resuming = False
            self._reply(Failed(str(error)))
            return False
        point.once = True
        self._points = [*self._points, point]
        return True

    def _home(self, standing: Sequence[types.FrameType]) -> tuple[int, Call] | None:
        """Return the call that the script stands in where that is a coroutine's."""
        if not standing or not _suspends(standing[0].f_code):
            return None
        call = self._tracer.calls.get(id(standing[0]))
        return None if call is None else (id(standing[0]), call)

    def past(self) -> contextlib.AbstractContextManager[Any]:
        """Open what was recorded up to now; set by whoever knows where the recording is."""
        return contextlib.nullcontext()

    def _step(self, grain: protocol.Grain, mode: protocol.Mode, standing: Sequence[types.FrameType]) -> Goal:
        """Turn a step into where it ends, seen from where the script stands."""
        codes, thread, frames = GRAINS[grain], Relay.origin(), len(standing)
        if mode == "into":
            finer = LINES | OPS if self._last in LINES else DECISIONS
            return Goal(codes | finer, thread=thread)
        here = (frames, self._level)
        if mode == "over":
            return Goal(codes, thread=thread, deepest=here, home=self._home(standing))
        if self._last in LINES:
            return Goal(codes, thread=thread, deepest=(frames - 1, sys.maxsize))
        if self._level > 0:
            return Goal(codes | LINES | OPS, thread=thread, deepest=(frames, self._level - 1))
        return Goal(LINES, thread=thread, deepest=(frames, sys.maxsize))


def _suspends(code: types.CodeType) -> bool:
    """Say whether others may run in the midst of a call, called by nobody of the user's: it can wait in ``await``."""
    return bool(code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR))


def _nudge() -> None:
    """Make the main thread run :meth:`Stepper._nudged` as soon as Python's interpreter has control there."""
    if os.name == "nt":
        _thread.interrupt_main(NUDGE)
    else:
        signal.pthread_kill(threading.main_thread().ident or 0, NUDGE)


def _wait_for_the_end() -> None:
    threading.Event().wait()


def _at(frames: Sequence[types.FrameType], level: int) -> types.FrameType | None:
    return frames[min(level, len(frames) - 1)] if frames else None


def _nobody(wire: Wire) -> None:
    """Take events while nothing records."""
