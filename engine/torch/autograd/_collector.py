"""What a profiler sees while it listens: every op call, every backward node, every labelled block.

An op's inner steps are the ops that it calls here. What PyTorch's kernels call among themselves (``as_strided`` in
``select``, ``empty`` and ``fill_`` in ``ones``) are no ops of this engine, and are not made up.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import time
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from stridescope.engine.autograd.node import AccumulateGrad, Node
from stridescope.engine.autograd.watched import watched
from stridescope.engine.device import CPU
from stridescope.engine.devices.simulated import Launches
from stridescope.engine.dispatch.op import Op
from stridescope.engine.dispatch.recorded import Interceptors
from stridescope.engine.events import journal
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.autograd._flops import flops_of
from stridescope.engine.torch.autograd.profiler_util import FunctionEvent
from stridescope.engine.warn import is_ours

FUNCTION, BACKWARD_FUNCTION, USER = 0, 1, 7  # PyTorch's RecordScope
MEMORY_EVENT_NAME = "[memory]"
EVALUATE = "autograd::engine::evaluate_function: "


class Call:
    """A call that runs or has run; times in nanoseconds, memory in bytes with the calls inside."""

    __slots__ = (
        "began", "device_memory", "ended", "flops", "forward", "kernels", "memory", "name", "outer", "overload",
        "scope", "sequence", "shapes", "stack", "thread",
    )  # fmt: skip

    def __init__(self, name: str, scope: int, outer: Call | None, thread: int) -> None:
        self.name, self.scope, self.outer, self.thread = name, scope, outer, thread
        self.memory = self.device_memory = self.flops = 0
        self.sequence, self.forward, self.overload = -1, 0, ""
        self.shapes: list[Any] = []
        self.stack: list[str] = []
        self.kernels: list[tuple[str, int, float]] = []
        self.began = self.ended = 0


class Collector:
    """Collects calls between :meth:`start` and :meth:`stop`; the one that started last listens.

    ``shapes``, ``memory``, ``stacks`` and ``flops`` say what is noted of each call besides its time; ``device`` whether
    kernels of the GPU are noted.
    """

    active: Collector | None = None

    def __init__(
        self, *, shapes: bool = False, memory: bool = False, stacks: bool = False, flops: bool = False,
        device: bool = False,
    ) -> None:  # fmt: skip
        self.shapes, self.memory, self.stacks, self.flops, self.device = shapes, memory, stacks, flops, device
        self.calls: list[Call] = []
        self.listening = False
        self._outer: Collector | None = None
        self._zero = time.perf_counter_ns()
        self._threads: dict[int, int] = {}
        self._local = threading.local()

    def start(self) -> None:
        """Begin to listen; a profiler that listened already does not until this one stops."""
        self._outer = Collector.active
        if self._outer is not None:
            self._outer.listen(False)
        Collector.active = self
        self.listen(True)

    def stop(self) -> None:
        """Listen no more; what still runs ends now."""
        self.listen(False)
        Collector.active, self._outer = self._outer, None
        if Collector.active is not None:
            Collector.active.listen(True)
        while self._open:
            self._end(self._open[-1])

    def listen(self, now: bool) -> None:
        """Listen or not from now on."""
        if now == self.listening:
            return
        self.listening = now
        watched.by = self if now else None
        Launches.heard = self._launched if now and self.device else None
        if now:
            Interceptors.before.insert(0, self._op)
        else:
            Interceptors.before.remove(self._op)
        journal.require_full(1 if now else -1)

    @property
    def _open(self) -> list[Call]:
        """The calls that run on this thread, outermost first."""
        if not hasattr(self._local, "open"):
            self._local.open = []
        return self._local.open  # type: ignore[no-any-return]

    # ---- what is heard ---------------------------------------------------------------------------------------------

    def _op(self, op: Op, call: Callable[..., Any], *args: Any) -> Any:
        entry = self.begin(f"aten::{op.schema.name}")
        entry.overload = op.schema.overload
        if self.shapes or self.flops:
            entry.shapes = [_sizes(value) for value in args]
        try:
            out = call(*args)
        finally:
            self._end(entry)
        self._note_result(entry, op, args, out)
        return out

    def _note_result(self, entry: Call, op: Op, args: Sequence[Any], out: Any) -> None:
        for made in out if isinstance(out, (tuple, list)) else (out,):
            if not isinstance(made, Tensor):
                continue
            if made._node is not None and op.composite is None:
                entry.sequence = made._node._sequence
            if self.memory and op.run is not None and not op.schema.writes:
                self._note_memory(entry, made)
        if self.flops:
            entry.flops = flops_of(op, args, out)

    def _note_memory(self, entry: Call, made: Tensor) -> None:
        """Count a new storage in all calls that made it, and its end in those that run then."""
        array, on_device = made._array, made._device is not CPU
        if made._base_tensor is not None or not array.nbytes:
            return
        within: Call | None = entry
        while within is not None:
            _add(within, array.nbytes, on_device)
            within = within.outer
        weakref.finalize(array, self._freed, array.nbytes, on_device).atexit = False

    def _freed(self, nbytes: int, on_device: bool) -> None:
        if not self.listening:
            return
        for call in self._open or [self._moment(MEMORY_EVENT_NAME)]:
            _add(call, -nbytes, on_device)

    def _moment(self, name: str) -> Call:
        call = self.begin(name)
        self._end(call)
        return call

    @contextlib.contextmanager
    def evaluating(self, node: Node) -> Iterator[None]:
        """Around all that the backward engine does for a node."""
        with self.block(EVALUATE + _node_name(node)) as call:
            call.sequence, call.forward = _origin(node)
            yield

    @contextlib.contextmanager
    def applying(self, node: Node, sizes: list[list[int]]) -> Iterator[None]:
        """Around a node's formula."""
        with self.block(_node_name(node), BACKWARD_FUNCTION) as call:
            call.sequence, call.forward = _origin(node)
            call.shapes = sizes if self.shapes else []
            yield

    @contextlib.contextmanager
    def block(self, name: str, scope: int = FUNCTION) -> Iterator[Call]:
        """Around anything that has a name."""
        call = self.begin(name, scope)
        try:
            yield call
        finally:
            self._end(call)

    def _launched(self, name: str, device: int, nanoseconds: int) -> None:
        if self._open:
            self._open[-1].kernels.append((name, device, nanoseconds / 1000))

    # ---- keeping ---------------------------------------------------------------------------------------------------

    def begin(self, name: str, scope: int = FUNCTION) -> Call:
        """Note that a call begins."""
        running = self._open
        thread = self._threads.setdefault(threading.get_ident(), len(self._threads) + 1)
        call = Call(name, scope, running[-1] if running else None, thread)
        if self.stacks:
            call.stack = _places(sys._getframe(1))
        self.calls.append(call)
        running.append(call)
        call.began = time.perf_counter_ns()
        return call

    def end(self, call: Call) -> None:
        """Note that a call has ended, if it has not."""
        if call in self._open:
            self._end(call)

    def _end(self, call: Call) -> None:
        now = time.perf_counter_ns()
        running = self._open
        while running and (last := running.pop()):
            last.ended = now
            if last is call:
                return

    def events(self, use_device: str | None) -> list[FunctionEvent]:
        """What was collected, in the order in which the calls began."""
        made: dict[Call, FunctionEvent] = {}
        for number, call in enumerate(self.calls, 1):
            event = made[call] = self._event(number, call, use_device)
            if call.outer is not None:
                event.set_cpu_parent(made[call.outer])
                made[call.outer].append_cpu_child(event)
        return list(made.values())

    def _event(self, number: int, call: Call, use_device: str | None) -> FunctionEvent:
        name = "ProfilerStep*" if call.name.startswith("ProfilerStep#") else call.name
        event = FunctionEvent(
            number, name, call.thread, (call.began - self._zero) / 1000, (call.ended - self._zero) / 1000,
            overload_name=call.overload, fwd_thread=call.forward, stack=call.stack, scope=call.scope,
            use_device=use_device,
            input_shapes=call.shapes if self.shapes else [], cpu_memory_usage=call.memory, flops=call.flops,
            device_memory_usage=call.device_memory, sequence_nr=call.sequence, trace_name=call.name,
            is_user_annotation=call.scope == USER,
        )  # fmt: skip
        for kernel in call.kernels:
            event.append_kernel(*kernel)
        return event


def _add(call: Call, nbytes: int, on_device: bool) -> None:
    if on_device:
        call.device_memory += nbytes
    else:
        call.memory += nbytes


def _sizes(value: Any) -> list[int]:
    return list(value._array.shape) if isinstance(value, Tensor) else []


def _node_name(node: Node) -> str:
    name = type(node).__name__
    return f"torch::autograd::{name}" if isinstance(node, AccumulateGrad) else name


def _origin(node: Node) -> tuple[int, int]:
    """The sequence number of the op that made a node, and the thread where that was; leaves were made by none."""
    return (-1, 0) if isinstance(node, AccumulateGrad) else (node._sequence, 1)


# What stands between the script and this file: context managers, finalizers, wrappers.
_BETWEEN = ("contextlib", "weakref", "functools", "stridescope.")


def _places(frame: types.FrameType | None) -> list[str]:
    """Where the script stands, innermost first: ``file(line): function``."""
    places = []
    while frame is not None:
        if not frame.f_globals.get("__name__", "").startswith(_BETWEEN) and not is_ours(frame):
            places.append(f"{frame.f_code.co_filename}({frame.f_lineno}): {frame.f_code.co_name}")
        frame = frame.f_back
    return places


def labelled(label: Callable[..., str]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a method stand in profiles as ``label(self)``; without a profiler it costs one question."""

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def profiled(self: Any, *args: Any, **kwargs: Any) -> Any:
            if Collector.active is None:
                return method(self, *args, **kwargs)
            with Collector.active.block(label(self), USER):
                return method(self, *args, **kwargs)

        return profiled

    return decorate
