"""What autograd does around in-place writes and views: checks, bases, and rebased histories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stridescope.engine.autograd.edges import (
    CopySlices,
    ViewInfo,
    info_of,
    move_hooks,
    refresh,
    refuse_rebase,
    spread_requires_grad,
)
from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.autograd.node import Node, meta_of, set_history
from stridescope.engine.autograd.saved import SavedTensor
from stridescope.engine.tensor import Tensor


def mark_view(result: Tensor, source: Tensor, multi: bool, replay: Callable[[Tensor], Tensor] | None = None) -> None:
    """Remember whose view ``result`` is, and how it was made."""
    if source._inference:
        mark_inference(result)
        return
    base = source._base_tensor
    result._base_tensor = base = source if base is None else base
    base._viewed = True
    kind, inherited = _kind(multi), source._view_info
    if inherited is not None and (kind == "plain" or inherited.kind == "inference"):
        kind = inherited.kind
    version = result.version_counter.value
    if kind != "plain" or version or replay or (inherited is not None and inherited.replay):
        info = result._view_info = ViewInfo(kind, version)
        info.replay = _chained(replay, source, result)
    if base._requires_grad and not (grad_mode.enabled and source._requires_grad) and result.dtype.category >= 2:
        info = result._view_info = result._view_info or ViewInfo(kind, version)
        info.inherited = result._requires_grad = True


def _kind(multi: bool) -> str:
    if grad_mode.inference:
        return "inference"
    if not grad_mode.enabled:
        return "no_grad"
    return "multi" if multi else "plain"


def _chained(
    replay: Callable[[Tensor], Tensor] | None, source: Tensor, result: Tensor
) -> Callable[[Tensor], Tensor] | None:
    """How to make ``result`` from its base when sizes and strides alone do not say it."""
    before = None if source._view_info is None else source._view_info.replay
    if replay is None and before is None:
        return None
    whole, part = source.layout_, result.layout_
    step = replay or (lambda t: t.as_strided(part.sizes, part.strides, t.offset + part.offset - whole.offset))
    if source._base_tensor is None:
        return step
    base = source._base_tensor.layout_
    first = before or (lambda t: t.as_strided(whole.sizes, whole.strides, t.offset + whole.offset - base.offset))
    return lambda t: step(first(t))


def remember_way(result: Tensor, source: Tensor, way: Callable[[Tensor], Tensor]) -> None:
    """Let a view that is already known as one be made again as it was, after its storage was written."""
    info = result._view_info = result._view_info or ViewInfo("plain", result.version_counter.value)
    info.replay = _chained(way, source, result)


def mark_inference(tensor: Tensor, kind: str = "inference") -> None:
    """Make a new tensor an inference tensor; its views take the long way and become such too.

    ``kind`` is ``detached`` for what ``detach()`` gives: that may be written in place again.
    """
    tensor._inference, tensor._plain = True, False
    tensor._view_info = ViewInfo(kind)


def check_inference(target: Tensor) -> None:
    """Refuse that an inference tensor was written outside inference mode (PyTorch notices after the write, too)."""
    if not grad_mode.inference and target._view_info.kind != "detached":
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a "
            "normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
        )


# Called with every tensor that is about to be written in place. Mostly empty.
before_write: list[Callable[[Tensor], None]] = []


def check_inplace(target: Tensor, wanted: bool) -> None:
    """Refuse an in-place write that autograd cannot follow."""
    for told in before_write:
        told(target)
    if not wanted:
        return
    base = target._base_tensor
    if base is not None:
        refuse_rebase(target, indirect=False)
        if target._requires_grad and base._node is None:
            raise RuntimeError(
                "a view of a leaf Variable that requires grad is being used in an in-place operation."
            )  # fmt: skip
    if target._requires_grad and target._node is None:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


def original_for_saving(node: Any, target: Tensor) -> Tensor | None:
    """A copy of ``target`` before the write when the node keeps its old values, else None."""
    if not any(keep.place == 0 and not keep.facet for keep in node.plan.of_args):
        return None
    return target.clone()  # type: ignore[no-any-return]


def bind_to_view(node: Any, view: Tensor) -> None:
    """Results saved by the node of a write to a view belong to the view's new grad_fn."""
    for keep in node.plan.of_results:
        kept = node.saved[keep.name]
        if isinstance(kept, SavedTensor):
            kept.bind(view._node)


def rebase_history(target: Tensor, node: Node) -> None:
    """Make ``node``, that of an in-place write, the new grad_fn of ``target``.

    When ``target`` is a view, its base gets a ``CopySlices`` around the node, and the view a way to that.
    """
    base = target._base_tensor
    if base is None:
        move_hooks(target, node)
        required = target._requires_grad
        set_history(node, [target])
        if not required:
            spread_requires_grad(target, True)
        return
    set_outputs(node, target)
    around = CopySlices(base, target, node)
    required = base._requires_grad
    if target._requires_grad:
        move_hooks(base, around)
    set_history(around, [base])
    if not required:
        spread_requires_grad(base, True)
    info_of(target).version = -1  # whatever its node was, it is another one now
    refresh(target)


def set_outputs(node: Node, target: Tensor) -> None:
    """Tell the write's own node what it writes; the tensor's history is the node around it."""
    node._outputs.append(meta_of(target))
