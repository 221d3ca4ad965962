"""``torch.utils._python_dispatch``: modes that see every op below autograd, and may do something else instead."""

from __future__ import annotations

import operator
from typing import Any, Self

from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.dispatch.call import any_wants
from stridescope.engine.dispatch.op import Op
from stridescope.engine.dispatch.recorded import Interceptors
from stridescope.engine.dispatch.tracking import track
from stridescope.engine.events import journal
from stridescope.engine.tensor import Tensor, alias
from stridescope.engine.torch._not_yet import missing_from
from stridescope.engine.torch._ops import overload_of


class TorchDispatchMode:
    """Inside the block, ``__torch_dispatch__(func, types, args, kwargs)`` stands in the place of every op's kernel.

    Ops that are made of others are not seen, those others are. What it returns becomes the result, with the history
    that the op gives. Ops that view or write keep their own history: there ``func`` is to be called.
    """

    __module__ = "torch.utils._python_dispatch"
    _busy = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Self:
        Interceptors.below.append(self._stand_in)
        journal.require_full(1)
        return self

    def __exit__(self, *exc: object) -> None:
        journal.require_full(-1)
        Interceptors.below.pop()

    def _stand_in(self, op: Op, call: Any, *args: Any) -> Any:
        if self._busy or op.composite is not None:
            return call(*args)
        below = op.view is None and not op.schema.writes
        before, enabled = self._busy, grad_mode.enabled
        self._busy, grad_mode.enabled = True, enabled and not below
        try:
            overload = overload_of(op)
            positional, named = overload.split(args)
            result = self.__torch_dispatch__(overload, (), positional, named)
        finally:
            self._busy, grad_mode.enabled = before, enabled
        return _tracked(op, args, result) if below else result


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
    return alias(value)


__getattr__ = missing_from("torch.utils._python_dispatch")

__all__ = ["TorchDispatchMode"]
