"""What may take an op's place below autograd: modes, innermost first, then classes with a ``__torch_dispatch__``."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.dispatch.call import any_wants, write
from stridescope.engine.dispatch.op import Op
from stridescope.engine.dispatch.recorded import Interceptors
from stridescope.engine.dispatch.run import flattened
from stridescope.engine.dispatch.torch_function import Overrides, dispatching
from stridescope.engine.dispatch.tracking import track
from stridescope.engine.events import journal
from stridescope.engine.ops.backward_ops import BY_NODE
from stridescope.engine.ops.subclasses import object_of
from stridescope.engine.tensor import Tensor, alias
from stridescope.engine.torch._ops import declared, waiting
from stridescope.engine.torch._shown_calls import WHOLE, Call, named, shown


class Mode(Protocol):
    """A ``TorchDispatchMode``."""

    _busy: bool

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Do something for an op."""


modes: list[Mode] = []
"""Those whose block we are in, the innermost last."""


def enter(mode: Mode) -> None:
    """Let a mode see every op."""
    modes.append(mode)
    Interceptors.below.append(functools.partial(_by_mode, mode))
    journal.require_full(1)
    grad_mode.shown = AUTOGRAD


def leave() -> None:
    """End the innermost mode's block."""
    modes.pop()
    Interceptors.below.pop()
    journal.require_full(-1)
    grad_mode.shown = AUTOGRAD if modes or Overrides.any_dispatch else None


def begin_classes() -> None:
    """From now on tensors of classes that have a ``__torch_dispatch__`` are looked for in every call."""
    Interceptors.below.insert(0, _by_class)
    journal.require_full(1)
    grad_mode.shown = AUTOGRAD


def _is_shown(op: Op) -> bool:
    return op.composite is None or op.name in WHOLE


def _by_mode(mode: Mode, op: Op, call: Callable[..., Any], *args: Any) -> Any:
    """What a mode gives for an op; views and writes keep the history that the engine gives them."""
    if mode._busy or not _is_shown(op):
        return call(*args)
    below = op.view is None and not op.schema.writes
    result = _asked(mode, shown(op, args, functools.partial(call, *args)), below)
    return _tracked(op, args, result) if below else result


def _asked(mode: Mode, seen: Call, below: bool = True) -> Any:
    """What the mode gives for a call; it is no mode meanwhile, and with ``below`` nothing is recorded."""
    before, enabled = mode._busy, grad_mode.enabled
    mode._busy, grad_mode.enabled = True, enabled and not below
    waiting.append(seen.waiting())
    try:
        return mode.__torch_dispatch__(seen.overload, _kinds(_dispatching(seen)), seen.args, seen.kwargs)
    finally:
        waiting.pop()
        mode._busy, grad_mode.enabled = before, enabled


def _by_class(op: Op, call: Callable[..., Any], *args: Any) -> Any:
    """What a class gives for an op of its tensors; writes give the tensor that is written."""
    if Overrides.without_dispatch or not _is_shown(op) or not dispatching(flattened(args)):
        return call(*args)
    seen = shown(op, args, functools.partial(call, *args))
    if not _dispatching(seen):  # only what was made of them is seen
        return seen.run()
    if not op.schema.writes:
        return _tracked(op, args, _by_classes(seen))
    wanted = grad_mode.enabled and any_wants([v for v in flattened(args) if isinstance(v, Tensor)])
    return write(dataclasses.replace(op, run=lambda *_: _by_classes(seen)), args, wanted)


def _by_classes(seen: Call) -> Any:
    """What the first class that has an answer says; raises TypeError where none has."""
    found = _dispatching(seen)
    kinds = _kinds(found)
    enabled, grad_mode.enabled = grad_mode.enabled, False
    try:
        for one in found:
            answer = type(one).__torch_dispatch__(seen.overload, kinds, seen.args, seen.kwargs)
            if answer is not NotImplemented:
                return answer
    finally:
        grad_mode.enabled = enabled
    refusals = "\n".join(f"  - tensor subclass {kind}" for kind in kinds)
    raise TypeError(
        f"Multiple dispatch failed for 'torch._ops.{seen.overload}'; all __torch_dispatch__ handlers returned "
        f"NotImplemented:\n\n{refusals}\n\nFor more information, try re-running with TORCH_LOGS=not_implemented"
    )


def _dispatching(seen: Call) -> list[Any]:
    return dispatching(flattened((*seen.args, *seen.kwargs.values()))) if Overrides.any_dispatch else []


def _kinds(found: Iterable[Any]) -> tuple[type, ...]:
    return tuple(map(type, found))


class _Autograd:
    """Shows what autograd does itself."""

    def call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], run: Callable[[], Any]) -> Any:
        """A call of the op ``name`` that ``run`` does."""
        seen = named(name, args, kwargs, run)
        if Overrides.any_dispatch and not Overrides.without_dispatch and _dispatching(seen):
            run = functools.partial(_by_classes, seen)
        for mode in modes:
            if not mode._busy:
                run = functools.partial(_asked, mode, seen._replace(run=run))
        return run()

    def formula(self, node: str, inputs: str, values: dict[str, Any], run: Callable[[], Any]) -> Any:
        """A derivative formula that PyTorch has as one op."""
        backward = BY_NODE.get((node, inputs))
        if backward is None or grad_mode.formula:
            return run()
        args, kwargs = declared(backward.name).split(backward.given(values))
        return self.call(backward.name, args, kwargs, run)


AUTOGRAD = _Autograd()


def _tracked(op: Op, args: tuple[Any, ...], result: Any) -> Any:
    """The result with the op's node in its history."""
    if not grad_mode.enabled or op.derivative is None:
        return result
    places = [args[place] for place in op.derivative.indices]
    if not any(any_wants(value if isinstance(value, (list, tuple)) else (value,)) for value in places):
        return result
    several = isinstance(result, (tuple, list))
    given = list(result) if several else [result]
    own = [_own(one, args) for one in given]
    track(op, args, tuple(own) if several else own[0])
    return result if all(map(operator.is_, own, given)) else tuple(own) if several else own[0]


def _own(value: Any, args: tuple[Any, ...]) -> Any:
    """A tensor without history, as results of kernels are."""
    if not isinstance(value, Tensor) or not (value._requires_grad or any(value is a for a in args)):
        return value
    made = alias(value)
    if type(value) is Tensor:
        return made
    own = object_of(type(value), made)
    own.__dict__.update(value.__dict__)
    return own
