"""What autograd does around in-place writes and views: checks, bases, and rebased histories."""

from __future__ import annotations

from typing import Any

from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.autograd.node import Node, set_history
from stridescope.engine.tensor import Tensor, alias


class ViewInfo:
    """How a view was made, where it matters for later in-place writes.

    Attributes:
        kind: ``multi`` (one of several outputs), ``no_grad``, ``inference`` or ``plain``.
        version: the counter's value when ``grad_fn`` was last right.
    """

    __slots__ = ("kind", "version")

    def __init__(self, kind: str, version: int) -> None:
        self.kind, self.version = kind, version


def mark_view(result: Tensor, source: Tensor, multi: bool) -> None:
    """Remember whose view ``result`` is."""
    base = source._base_tensor
    result._base_tensor = source if base is None else base
    kind = "multi" if multi else "plain" if grad_mode.enabled else "no_grad"
    inherited = source._view_info
    if kind == "plain" and inherited is not None:
        kind = inherited.kind
    version = result.version_counter.value
    if kind != "plain" or version:
        result._view_info = ViewInfo(kind, version)


def check_inplace(target: Tensor, wanted: bool) -> None:
    """Refuse an in-place write that autograd cannot follow."""
    if not grad_mode.enabled:
        return
    if target._requires_grad and target._node is None:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    base = target._base_tensor
    if base is not None and base._requires_grad and base._node is None:
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")


def original_for_saving(op: Any, target: Tensor) -> Tensor | None:
    """A copy of ``target`` before the write when a formula asks for the old values, else None."""
    wants = {want for formula in op.derivative.formulas for want in formula.wants}
    name = op.schema.arguments[0].name
    if name not in wants:
        return None
    copy = alias(target)
    copy._array, copy._storage, copy._version_counter = target._array.copy(order="K"), None, None
    copy._requires_grad, copy._node, copy._output_nr = target._requires_grad, target._node, target._output_nr
    return copy


def rebase_history(target: Tensor, node: Node) -> None:
    """Make ``node`` the new grad_fn of a tensor that was written in place."""
    set_history(node, [target])
