"""``torch.utils._python_dispatch``: modes that see every op below autograd, and may do something else instead."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Self

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch import _dispatch_stack as stack
from stridescope.engine.torch._not_yet import missing_from


class TorchDispatchMode:
    """Inside the block, ``__torch_dispatch__(func, types, args, kwargs)`` stands in the place of every op's kernel.

    Ops that are made of others are not seen, those others are. What it returns becomes the result, with the history
    that the op gives. Ops that view or write keep their own history: there ``func`` is to be called.
    """

    __module__ = "torch.utils._python_dispatch"
    _busy = False

    def __init__(self, _dispatch_key: Any = None) -> None:
        pass

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Self:
        stack.enter(self)
        return self

    def __exit__(self, *exc: object) -> None:
        stack.leave()


def _get_current_dispatch_mode() -> Any:
    """The innermost mode, or None."""
    return stack.modes[-1] if stack.modes else None


def _get_current_dispatch_mode_stack() -> list[Any]:
    """The modes, the innermost last."""
    return list(stack.modes)


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """In this block no mode sees anything."""
    modes = list(stack.modes)
    before = [mode._busy for mode in modes]
    for mode in modes:
        mode._busy = True
    try:
        yield modes
    finally:
        for mode, busy in zip(modes, before, strict=True):
            mode._busy = busy


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether tensors of a class can be taken apart and put together again."""
    flat = hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")
    return issubclass(t, Tensor) and t is not Tensor and flat


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether this is a tensor that can be taken apart and put together again."""
    return is_traceable_wrapper_subclass_type(type(t))


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """What a ``__torch_dispatch__`` returns for ``out``: of an op that writes, the tensor that it was given."""
    if not getattr(func, "writes", False):
        return out
    argument = next(a for a in func.schema.arguments if a.name in func.schema.writes)
    place = func.schema.arguments.index(argument)
    return args[place] if place < len(args) else kwargs[argument.name]


__getattr__ = missing_from("torch.utils._python_dispatch")

__all__ = ["TorchDispatchMode"]
