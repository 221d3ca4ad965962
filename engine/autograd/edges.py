"""Where gradients go: the edge of a tensor, and the history of views after writes in place.

A view's grad_fn is right for one version of its storage. When the version has moved on (its base, or another view of
it, was written in place), the view gets a new node the next time someone asks: one ``AsStridedBackward0`` from the
base. Such a write itself makes the base's history a ``CopySlices`` node around the write's own.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

from stridescope.engine.autograd.as_strided import AsStridedBackward0, view_into
from stridescope.engine.autograd.blank import blank
from stridescope.engine.autograd.node import (
    NO_EDGE,
    Edge,
    Gradients,
    Node,
    accumulator,
    forward_name,
    hooks_of,
    set_history,
)
from stridescope.engine.events import RequiresGradSet, journal
from stridescope.engine.layout import contiguous_format
from stridescope.engine.tensor import Tensor


class ViewInfo:
    """How a view was made, where it matters for later in-place writes; a tensor without one is a plain view.

    Attributes:
        kind: ``plain``, ``multi`` (one of several outputs), ``no_grad``, ``inference`` or ``custom``.
        version: the counter's value when ``grad_fn`` was last right.
        inherited: it requires grad because its base does, and has no grad_fn: gradients end here.
        replay: makes the same view of another base, for views that sizes and strides cannot express.
    """

    __slots__ = ("inherited", "kind", "replay", "version")

    def __init__(self, kind: str = "plain", version: int = 0) -> None:
        self.kind, self.version = kind, version
        self.inherited = False
        self.replay: Callable[[Tensor], Tensor] | None = None


# That of every view that is made without grad mode of a tensor that was never written: backward makes many of them.
UNTRACKED = ViewInfo("no_grad")


def info_of(view: Tensor) -> ViewInfo:
    """The view's info, to change something in it."""
    info = view._view_info
    if info is None or info is UNTRACKED:
        info = view._view_info = ViewInfo("plain" if info is None else info.kind)
    return info  # type: ignore[no-any-return]


def gradient_edge(tensor: Any) -> Edge:
    """Where the gradient of ``tensor`` goes; (None, 0) for what needs none."""
    if not isinstance(tensor, Tensor) or not tensor._requires_grad:
        return NO_EDGE
    if tensor._base_tensor is not None:
        refresh(tensor)
        info = tensor._view_info
        if info is not None and info.inherited:
            return NO_EDGE
    if tensor._node is not None:
        return tensor._node, tensor._output_nr
    return accumulator(tensor), 0


def grad_fn_of(tensor: Tensor) -> Node | None:
    """``tensor.grad_fn``, made anew for a view whose storage was written."""
    if tensor._base_tensor is not None:
        refresh(tensor)
    return tensor._node  # type: ignore[no-any-return]


def refresh(view: Tensor) -> None:
    """Bring a view's grad_fn up to its storage's version; raises RuntimeError for views that may not be rebased."""
    info, base = view._view_info, view._base_tensor
    version = view.version_counter.value
    if version == (0 if info is None else info.version):
        return
    if view._node is None and not base._requires_grad:
        return
    refuse_rebase(view, indirect=True)
    info = info_of(view)
    if info.replay is not None:
        fresh = info.replay(base)
        move_hooks(view, fresh._node)
        view._node, view._output_nr = fresh._node, fresh._output_nr
    else:
        node = AsStridedBackward0(base, view, gradient_edge(base))
        move_hooks(view, node)
        set_history(node, [view])
    view._requires_grad = True
    info.version, info.inherited = version, False


def move_hooks(target: Tensor, node: Node) -> None:
    """The tensor gets a new node: hooks registered so far stay with the old one, ``retain_grad`` follows the tensor."""
    target._hooks = None
    if target._retains_grad and target._node is not None and target._node._hooks is not None:
        old = target._node._hooks.retain.pop(target._output_nr, None)
        if old is not None:
            hooks_of(node).retain[0] = old


class CopySlices(Node):
    """The node of a base whose view was written in place: the write's own node ``inner``, put around the whole base.

    Its first input is the base as it was, the others are those of ``inner``.
    """

    __slots__ = ("base", "inner", "replay", "view")
    shown_name = "torch::autograd::CopySlices"

    def __init__(self, base: Tensor, view: Tensor, inner: Node) -> None:
        self.inner: Node | None = inner
        self.base, self.view = base.layout_, view.layout_
        self.replay = None if view._view_info is None else view._view_info.replay
        super().__init__((gradient_edge(base), *inner._edges[1:]))

    def _run(self, gradients: Gradients) -> Gradients:
        """The gradient outside the slice goes on as it is; inside, what ``inner`` makes of it."""
        gradient = gradients[0]
        if gradient is None:
            return (None,) * len(self._edges)
        if self.inner is None:
            from stridescope.engine.autograd.saved import FREED

            raise RuntimeError(FREED)
        whole = blank(self.base.sizes, self.base.strides, gradient).copy_(gradient)
        if self.replay is not None:
            part = self.replay(whole)
        else:
            part = view_into(whole, self.view, self.view.offset - self.base.offset)
        results = list(self.inner._run((part.clone(memory_format=contiguous_format),)))
        if results[0] is not None:
            part.copy_(results[0])
        return (None if self._edges[0][0] is None else whole, *results[1:])

    def _release(self) -> None:
        """Free what the write's node saved."""
        if self.inner is not None:
            self.inner._release()
            self.inner = None


CopySlices.__module__ = "builtins"


def refuse_rebase(view: Tensor, indirect: bool) -> None:
    """Raise RuntimeError when a view of this kind may not be written (or, ``indirect``, its base may not)."""
    info = view._view_info
    if info is None or info.kind == "plain":
        return
    written = "its base or another view of its base has been" if indirect else "is being"
    raise RuntimeError(_header(view, info.kind, written) + _REASONS[info.kind])


def _header(view: Tensor, kind: str, written: str) -> str:
    node = view._node
    output = "" if node is None else f"Output {view._output_nr} of {forward_name(node)} is a view"
    if kind in ("no_grad", "inference") or node is None:
        prefix = f"{output} of a view which was created in" if output else "A view was created in"
        if kind == "inference":
            return f"{prefix} inference mode and {written} modified inplace in normal mode."
        return f"{prefix} no_grad mode and {written} modified inplace with grad mode enabled."
    return f"{output} and {written} modified inplace."


def _move_inside(block: str) -> str:
    return (
        " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving "
        f"both the view and the inplace either both inside the {block} block (if you don't want the inplace to be "
        "tracked) or both outside (if you want the inplace to be tracked)."
    )


_REASONS = {
    "multi": " This view is the output of a function that returns multiple views. Such functions do not allow the "
    "output views to be modified inplace. You should replace the inplace operation by an out-of-place one.",
    "no_grad": _move_inside("no_grad"),
    "inference": _move_inside("inference_mode"),
    "custom": " This view was created inside a custom Function (or because an input was returned as-is) and the "
    "autograd logic to handle view+inplace would override the custom backward associated with the custom Function, "
    "leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom "
    "Function.",
}


# ---- views of a tensor whose requires_grad changes -----------------------------------------------------------------

_ALONE = 3  # references to a version counter that one tensor holds: the tensor's, and two of the asking itself


def spread_requires_grad(base: Tensor, value: bool) -> None:
    """Let the views of ``base`` require grad with it.

    A base does not know its views: noting each would cost every view for a thing that few programs do. They are
    looked for here, and only when it has been viewed and somebody still shares its version counter.
    """
    counter = base._version_counter
    if not base._viewed or sys.getrefcount(counter) <= _ALONE:
        return
    for view in _views_of(base):
        if value and not view._requires_grad and view.dtype.category >= 2:
            view._requires_grad = True
            info_of(view).inherited = True
        elif not value and view._view_info is not None and view._view_info.inherited:
            view._requires_grad = view._view_info.inherited = False
        if view._id and (emit := journal.emit) is not None:
            emit((RequiresGradSet.code, view._id, view._requires_grad))


def _views_of(base: Tensor) -> list[Tensor]:
    """The living views of a tensor."""
    found: list[Any] = []
    for holder in gc.get_referrers(base):
        if isinstance(holder, Tensor):
            found.append(holder)
        elif type(holder) is dict and holder.get("_base_tensor") is base:
            found.extend(owner for owner in gc.get_referrers(holder) if isinstance(owner, Tensor))
    return [view for view in found if view._base_tensor is base]
