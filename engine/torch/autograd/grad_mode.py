"""``torch.no_grad`` and its kin: context managers and decorators that switch grad mode of this thread."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.events import journal


class _Switch:
    """A context manager that also decorates functions, generator functions and classes' methods."""

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exc: object) -> None:
        raise NotImplementedError

    def clone(self) -> Any:
        """A fresh switch of the same kind, for the next entry."""
        return type(self)()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate ``function``: it runs with the switch on."""
        if inspect.isgeneratorfunction(function):
            return _generator(self.clone, function)

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return wrapped


def _generator(switch: Callable[[], Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """A generator function whose every step runs with the switch on; its consumer does not."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        step: Callable[[], Any] = functools.partial(generator.send, None)
        while True:
            try:
                with switch():
                    produced = step()
            except StopIteration as stop:
                return stop.value
            try:
                sent = yield produced
            except GeneratorExit:
                with switch():
                    generator.close()
                raise
            except BaseException as error:
                step = functools.partial(generator.throw, error)
            else:
                step = functools.partial(generator.send, sent)

    return wrapped


class _Plain(_Switch):
    """A switch that may decorate without parentheses: ``@torch.no_grad``."""

    value = False

    def __new__(cls, function: Any = None) -> Any:
        made = object.__new__(cls)
        return made if function is None else made(function)

    def __enter__(self) -> None:
        self.before = grad_mode.enabled
        grad_mode.enabled = self.value

    def __exit__(self, *exc: object) -> None:
        grad_mode.enabled = self.before


class no_grad(_Plain):
    """Record nothing for backward inside the block."""


class enable_grad(_Plain):
    """Record again inside a ``no_grad`` block."""

    value = True


class set_grad_enabled(_Switch):
    """Switch recording on or off: from the call on, or only inside a ``with`` block."""

    def __init__(self, mode: bool) -> None:
        self.mode, self.before = mode, grad_mode.enabled
        grad_mode.enabled = mode

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate ``function``; the construction's own effect is taken back."""
        grad_mode.enabled = self.before
        return super().__call__(function)

    def __enter__(self) -> None:
        grad_mode.enabled = self.mode

    def __exit__(self, *exc: object) -> None:
        grad_mode.enabled = self.before

    def clone(self) -> set_grad_enabled:
        """A fresh switch of the same mode."""
        return type(self)(self.mode)

    def __repr__(self) -> str:
        return f"{type(self).__module__}.{type(self).__name__}(mode={self.mode})"


class inference_mode(_Switch):
    """Record nothing, and make tensors that autograd may never use."""

    def __new__(cls, mode: Any = True) -> Any:
        made = object.__new__(cls)
        if isinstance(mode, bool):
            return made
        made.mode = True
        return made(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        self.before = grad_mode.enabled, grad_mode.inference
        grad_mode.inference = self.mode
        grad_mode.enabled = not self.mode
        _count(self.before[1], self.mode)

    def __exit__(self, *exc: object) -> None:
        _count(grad_mode.inference, self.before[1])
        grad_mode.enabled, grad_mode.inference = self.before

    def clone(self) -> inference_mode:
        """A fresh switch of the same mode."""
        return type(self)(self.mode)


def _count(before: bool, after: bool) -> None:
    """Tell the dispatcher whether it has to look for inference tensors."""
    if before != after:
        journal.require_full(1 if after else -1)


def is_grad_enabled() -> bool:
    """Whether ops record for backward now."""
    return grad_mode.enabled


def is_inference_mode_enabled() -> bool:
    """Whether new tensors are inference tensors now."""
    return grad_mode.inference


for _kind in (no_grad, enable_grad, set_grad_enabled, inference_mode):
    _kind.__module__ = "torch.autograd.grad_mode"
