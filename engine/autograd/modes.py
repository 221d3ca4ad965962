"""Grad mode and inference mode: thread-local switches that say whether ops build a graph.

The classes here are what a script knows as ``torch.no_grad``, ``torch.enable_grad``, ``torch.set_grad_enabled`` and
``torch.inference_mode``: context managers that also decorate functions, generators and (with a warning) classes.
"""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
from collections.abc import Callable, Generator
from typing import Any, Protocol

from stridescope.engine.events import journal


class Shown(Protocol):
    """What autograd's own calls are shown to, which may do something else instead."""

    def call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], run: Callable[[], Any]) -> Any:
        """A call of the op ``name`` that ``run`` does."""

    def formula(self, node: str, inputs: str, values: dict[str, Any], run: Callable[[], Any]) -> Any:
        """A derivative formula, for these inputs of a node, of these values by the formula's names for them."""


class GradMode(threading.local):
    """The switches of this thread.

    Attributes:
        enabled: ops on tensors that require grad make nodes.
        inference: new tensors are inference tensors and nothing is tracked.
        asked: in inference mode, what ``enable_grad`` and the like have asked for: it is shown, and nothing more.
        formula: a derivative formula runs and is itself recorded (``create_graph``).
        layout: the first gradient of a leaf gets the leaf's layout.
        shown: while something may take the place of every op, what autograd's own calls are shown to.
    """

    enabled: bool = True
    inference: bool = False
    asked: bool = False
    formula: bool = False
    layout: bool = True
    shown: Shown | None = None


grad_mode = GradMode()


def is_grad_enabled() -> bool:
    """Whether ops build a graph now, or would if this were not inference mode."""
    return grad_mode.asked if grad_mode.inference else grad_mode.enabled


def switch_grad(enabled: bool) -> bool:
    """Set grad mode, and return what it was."""
    before = is_grad_enabled()
    if grad_mode.inference:
        grad_mode.asked = enabled
    else:
        grad_mode.enabled = enabled
    return before


# The transforms of torch.func that are at work, innermost last: each says how a custom function is applied in it.
transforms: list[Callable[..., Any]] = []


def in_cpp(function: Callable[..., Any]) -> Callable[..., Any]:
    """A composite in which numbers are those of C++: its ``x + 1`` has another node (``AddBackward1``)."""

    @functools.wraps(function)
    def within(*args: Any, **kwargs: Any) -> Any:
        before, grad_mode.formula = grad_mode.formula, True
        try:
            return function(*args, **kwargs)
        finally:
            grad_mode.formula = before

    return within


class ForwardMode:
    """Forward-mode differentiation, as far as other rooms have to know of it.

    Attributes:
        custom: what becomes of a call of a custom function; None while no dual level is entered.
        serial: the number of the level: tangents of levels that were left do not count.
    """

    custom: Callable[..., Any] | None = None
    serial: int = 0

    @classmethod
    def carried_by(cls, tensor: Any) -> bool:
        """Whether the tensor carries a tangent of the level that is entered."""
        return cls.custom is not None and cls.serial in tensor.__dict__.get("_tangents", ())


def may_be_differentiated(tensor: Any) -> bool:
    """Whether an op on the tensor has to keep what a derivative needs: it is tracked, or carries a tangent."""
    return bool(grad_mode.enabled and tensor._requires_grad) or ForwardMode.carried_by(tensor)


class Anomaly:
    """``torch.autograd.set_detect_anomaly``: whether nodes remember who made them and gradients are checked."""

    enabled: bool = False
    check_nan: bool = True


anomaly = Anomaly()


class ModeContext:
    """A context manager that can also decorate: each call of the decorated function runs in a fresh copy of it."""

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exc: object) -> None:
        raise NotImplementedError

    def clone(self) -> ModeContext:
        """A context with the same settings."""
        return type(self)()

    def __call__(self, function: Any) -> Any:
        """Decorate ``function``."""
        return decorated(self.clone, function)


def decorated(make: Callable[[], Any], function: Any) -> Any:
    """``function`` run inside ``make()``; a generator is inside only while its own code runs."""
    if inspect.isclass(function):
        warnings.warn(
            "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
            "functions or methods. To preserve the current behavior of class decoration, you can directly decorate "
            "the `__init__` method and nothing else.",
            FutureWarning,
            stacklevel=3,
        )
    if inspect.isgeneratorfunction(function):
        return _decorated_generator(make, function)

    @functools.wraps(function, updated=() if inspect.isclass(function) else ("__dict__",))
    def within(*args: Any, **kwargs: Any) -> Any:
        with make():
            return function(*args, **kwargs)

    return within


def _decorated_generator(make: Callable[[], Any], function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def within(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        generator = function(*args, **kwargs)
        resume: Callable[[], Any] = lambda: generator.send(None)  # noqa: E731
        while True:
            try:
                with make():
                    item = resume()
            except StopIteration as stop:
                return stop.value
            resume = yield from _handed_out(generator, item, make)

    return within


def _handed_out(generator: Any, item: Any, make: Callable[[], Any]) -> Generator[Any, Any, Callable[[], Any]]:
    """Yield ``item`` in the caller's mode; the result is how the generator goes on."""
    try:
        sent = yield item
    except GeneratorExit:
        with make():
            generator.close()
        raise
    except BaseException as error:
        thrown = error
        return lambda: generator.throw(thrown)
    return lambda: generator.send(sent)


class _PlainContext(ModeContext):
    """A context without settings, which may also be used as ``@no_grad`` without brackets."""

    enabled: bool

    def __new__(cls, function: Any = None) -> Any:
        if function is None:
            return object.__new__(cls)
        return cls()(function)

    def __init__(self) -> None:
        self.prev = False

    def __enter__(self) -> None:
        self.prev = switch_grad(self.enabled)

    def __exit__(self, *exc: object) -> None:
        switch_grad(self.prev)


class no_grad(_PlainContext):  # noqa: N801
    """Inside, ops build no graph."""

    enabled = False


class enable_grad(_PlainContext):  # noqa: N801
    """Inside, ops build a graph again."""

    enabled = True


class set_grad_enabled(ModeContext):  # noqa: N801
    """Switches grad mode at once; as a context manager it also switches back."""

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(
                f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}"
            )  # fmt: skip
        self.prev, self.mode = switch_grad(mode), mode

    def __call__(self, function: Any) -> Any:
        """Decorate ``function``; the switch that making this context was is taken back."""
        switch_grad(self.prev)
        return super().__call__(function)

    def __enter__(self) -> None:
        switch_grad(self.mode)

    def __exit__(self, *exc: object) -> None:
        switch_grad(self.prev)

    def __str__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    __repr__ = __str__

    def clone(self) -> set_grad_enabled:
        """A context with the same mode."""
        return type(self)(self.mode)


class inference_mode(ModeContext):  # noqa: N801
    """Inside, nothing is tracked and new tensors are inference tensors, which autograd refuses for good."""

    def __new__(cls, mode: Any = True) -> Any:
        """A context, or, used as ``@inference_mode``, the decorated function."""
        if isinstance(mode, bool):
            return object.__new__(cls)
        return cls()(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode
        self._before: list[tuple[bool, bool, bool]] = []

    def __enter__(self) -> None:
        self._before.append((grad_mode.enabled, grad_mode.asked, grad_mode.inference))
        self._switch(not self.mode, False, self.mode)

    def __exit__(self, *exc: object) -> None:
        self._switch(*self._before.pop())

    @staticmethod
    def _switch(enabled: bool, asked: bool, inference: bool) -> None:
        if inference != grad_mode.inference:
            journal.require_full(1 if inference else -1)
        grad_mode.enabled, grad_mode.asked, grad_mode.inference = enabled, asked, inference

    def clone(self) -> inference_mode:
        """A context with the same mode."""
        return type(self)(self.mode)


class set_multithreading_enabled(ModeContext):  # noqa: N801
    """Accepted for scripts that switch the backward engine's threads; here it always runs in the calling thread."""

    enabled: bool = True

    def __init__(self, mode: bool) -> None:
        self.prev, self.mode = type(self).enabled, mode
        set_multithreading_enabled.enabled = mode

    def __enter__(self) -> None:
        """Nothing more: the switch was made when the context was."""

    def __exit__(self, *exc: object) -> None:
        set_multithreading_enabled.enabled = self.prev

    def clone(self) -> set_multithreading_enabled:
        """A context with the same mode."""
        return type(self)(self.mode)


for _mode in (no_grad, enable_grad, set_grad_enabled, inference_mode, set_multithreading_enabled):
    _mode.__module__ = "torch.autograd.grad_mode"


def is_inference_mode_enabled() -> bool:
    """Whether new tensors are inference tensors now."""
    return grad_mode.inference
