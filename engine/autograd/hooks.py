"""Running hooks: on tensors, before and after nodes; and what each may give back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from stridescope.engine.announce import tensor_id
from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.autograd.node import AccumulateGrad, Gradients, Node, node_id
from stridescope.engine.autograd.saved import TYPE_NAMES
from stridescope.engine.events import GradSet, HookRan, journal
from stridescope.engine.tensor import Tensor

Numbered = tuple[int, dict[int, Callable[[Any], Any]]]


def tensor_hooks(node: Node) -> Iterable[Numbered]:
    """The hooks of ``Tensor.register_hook``, by output; a leaf keeps its own."""
    if node.__class__ is AccumulateGrad:
        own = node.variable._hooks
        return ((0, own),) if own else ()
    return node._hooks.tensor if node._hooks is not None else ()


def run_tensor_hooks(node: Node, gradients: list[Tensor | None]) -> None:
    """Run the hooks of each output on its gradient, in place of which they may put another; then ``retain_grad``."""
    for number, registered in tensor_hooks(node):
        for hook in list(registered.values()):
            gradients[number] = _replaced(hook, gradients[number], node)
    if node._hooks is not None:
        for number, reference in node._hooks.retain.items():
            tensor, gradient = reference(), gradients[number]
            if tensor is not None and gradient is not None:
                retain(tensor, gradient)


def _replaced(hook: Callable[[Any], Any], gradient: Tensor | None, node: Node) -> Tensor | None:
    result = hook(gradient)
    if (emit := journal.emit) is not None:
        emit((HookRan.code, "tensor hook", node_id(node), 0 if gradient is None else tensor_id(gradient)))
    if result is None:
        return gradient
    check(hook, gradient, result)
    return result  # type: ignore[no-any-return]


def retain(tensor: Tensor, gradient: Tensor) -> None:
    """Keep a non-leaf's gradient in its ``.grad``, adding to what is there."""
    old = tensor._grad
    tensor._grad = _row_major_copy(gradient) if old is None else old + gradient
    if (emit := journal.emit) is not None:
        emit((GradSet.code, tensor_id(tensor), tensor_id(tensor._grad)))


def _row_major_copy(gradient: Tensor) -> Tensor:
    dense = gradient.contiguous()
    return dense.clone() if dense is gradient else dense  # type: ignore[no-any-return]


def run_pre_hooks(node: Node, gradients: Gradients) -> Gradients:
    """``Node.register_prehook`` hooks, each seeing what the one before returned."""
    for hook in list(node._hooks.pre.values()):  # type: ignore[union-attr]
        gradients = _replaced_tuple(hook, hook(gradients), gradients)
        if (emit := journal.emit) is not None:
            emit((HookRan.code, "pre-hook", node_id(node), 0))
    return gradients


def run_post_hooks(node: Node, results: Gradients, gradients: Gradients) -> Gradients:
    """``Node.register_hook`` hooks with (gradients of inputs, gradients of outputs)."""
    for hook in list(node._hooks.post.values()):  # type: ignore[union-attr]
        results = _replaced_tuple(hook, hook(results, gradients), results)
        if (emit := journal.emit) is not None:
            emit((HookRan.code, "post-hook", node_id(node), 0))
    return results


def _replaced_tuple(hook: Callable[..., Any], result: Any, before: Gradients) -> Gradients:
    if result is None:
        return before
    if not isinstance(result, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(result).__name__}'")
    if len(result) != len(before):
        raise RuntimeError(f"hook '{_hook_name(hook)}' has returned an incorrect number of values (got {len(result)}, "
                           f"but expected {len(before)})")  # fmt: skip
    for old, new in zip(before, result, strict=True):
        check(hook, old, new)
    return result


def check(hook: Callable[..., Any], old: Tensor | None, new: Any) -> None:
    """Refuse what a hook may not put in place of a gradient."""
    if new is None:
        if old is not None:
            return
        return
    if old is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if not isinstance(new, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(new).__name__}'")
    name = _hook_name(hook)
    if new.dtype is not old.dtype or (new.device.type != old.device.type):
        raise RuntimeError(
            f"hook '{name}' has changed the type of value (was {type_of(old)} got {type_of(new)})"
        )  # fmt: skip
    if new._array.shape != old._array.shape:
        raise RuntimeError(f"hook '{name}' has changed the size of value")


def type_of(tensor: Tensor) -> str:
    """``torch.FloatTensor``: dtype and device as one name."""
    place = "torch.cuda." if tensor.device.type == "cuda" else "torch."
    return f"{place}{TYPE_NAMES.get(tensor.dtype.name, 'Float')}Tensor"


def _hook_name(hook: Callable[..., Any]) -> str:
    return getattr(hook, "__name__", "<unknown>")


def with_mode(enabled: bool, function: Callable[[], Any]) -> Any:
    """Call ``function`` with grad mode set, and set it back."""
    before, grad_mode.enabled = grad_mode.enabled, enabled
    try:
        return function()
    finally:
        grad_mode.enabled = before
