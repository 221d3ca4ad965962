"""``torch.autograd.grad_mode._force_original_view_tracking``: written views are made again as they were made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stridescope.engine.autograd.history import remember_way
from stridescope.engine.autograd.modes import ModeContext
from stridescope.engine.dispatch.op import Op
from stridescope.engine.dispatch.recorded import Interceptors
from stridescope.engine.events import journal
from stridescope.engine.tensor import Tensor


def is_view_replay_enabled() -> bool:
    """Whether views made now remember how they were made."""
    return _remember in Interceptors.before


def _switch(enabled: bool) -> None:
    if enabled == is_view_replay_enabled():
        return
    if enabled:
        Interceptors.before.append(_remember)
    else:
        Interceptors.before.remove(_remember)
    journal.require_full(1 if enabled else -1)


def _remember(op: Op, call: Callable[..., Any], *args: Any) -> Any:
    result = call(*args)
    if op.view is not None and op.derivative is not None and isinstance(result, Tensor) and not result._inference:
        remember_way(result, args[0], lambda source: op.call(source, *args[1:]))
    return result


class _force_original_view_tracking(ModeContext):  # noqa: N801
    """Whether a view whose storage was written gets the nodes of its own ops anew, or one AsStridedBackward0.

    As a function it holds from now on, as a context or decorator until the end.
    """

    def __init__(self, mode: bool) -> None:
        self.prev, self.mode = is_view_replay_enabled(), mode
        _switch(mode)

    def __enter__(self) -> None:
        _switch(self.mode)

    def __exit__(self, *exc: object) -> None:
        _switch(self.prev)

    def clone(self) -> _force_original_view_tracking:
        """A context with the same setting."""
        return type(self)(self.mode)


_force_original_view_tracking.__module__ = "torch.autograd.grad_mode"
