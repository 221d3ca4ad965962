"""Adding gradients: into a node's input buffer, and into the ``.grad`` of a leaf."""

from __future__ import annotations

import sys

from stridescope.engine.announce import tensor_id
from stridescope.engine.autograd.blank import blank
from stridescope.engine.autograd.edges import grad_fn_of
from stridescope.engine.autograd.hooks import with_mode
from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.events import GradAccumulated, HookRan, journal
from stridescope.engine.layout import is_contiguous, is_non_overlapping_and_dense, strided
from stridescope.engine.tensor import Tensor, alias
from stridescope.engine.warn import internal, warn_once

# What sys.getrefcount counts for a tensor that one local variable here holds and nobody else.
_SOLE = 2


def summed(old: Tensor, new: Tensor, held: int) -> Tensor:
    """``old + new``, written into ``old`` when the engine alone holds it; ``held`` are the references it has itself."""
    if (
        not grad_mode.enabled
        and grad_mode.shown is None
        and sys.getrefcount(old) <= held + _SOLE
        and is_non_overlapping_and_dense(old._array.shape, old.strides)
        and (old._storage is None or sys.getrefcount(old._storage) <= _SOLE)
        and old._base_tensor is None
    ):
        old.add_(new)
        return old
    return old + new  # type: ignore[no-any-return]


def accumulate(leaf: Tensor, gradients: list[Tensor | None], others: int = 0) -> None:
    """Add the gradient, the list's only item, to ``leaf.grad`` (``AccumulateGrad``).

    The first gradient is taken over as it is when nobody else holds it (but for ``others``) and its layout follows the
    leaf's, else it is copied in that layout. Later ones are added in place, or out of place under create_graph.
    """
    gradient = gradients.pop()
    if gradient is None:
        return
    if grad_fn_of(leaf) is not None:
        raise RuntimeError("leaf variable has been moved into the graph interior")
    if not leaf._requires_grad:
        run_post_accumulate_hooks(leaf)
        return
    old = leaf._grad
    if old is None:
        fits = not grad_mode.layout or _obeys(gradient, leaf)
        if not grad_mode.enabled and sys.getrefcount(gradient) <= _SOLE + others and fits:
            leaf._grad = _taken(gradient)
        else:
            leaf._grad = _relaid(gradient, leaf)
    else:
        if grad_mode.enabled:
            leaf._grad = old + gradient
        else:
            old.add_(gradient)
        if grad_mode.layout and not _obeys(leaf._grad, leaf):
            _warn_of_layout(leaf._grad, leaf)
    if (emit := journal.emit) is not None:
        emit((GradAccumulated.code, tensor_id(leaf), tensor_id(leaf._grad), old is None))
    run_post_accumulate_hooks(leaf)


def _taken(gradient: Tensor) -> Tensor:
    if grad_mode.shown is None:
        return alias(gradient)
    taken: Tensor = grad_mode.shown.call("detach", (gradient,), {}, lambda: alias(gradient))
    return taken


def run_post_accumulate_hooks(leaf: Tensor) -> None:
    """``Tensor.register_post_accumulate_grad_hook`` hooks; they must return None, or the leaf as in-place ops do."""
    for hook in list(leaf._post_hooks.values()) if leaf._post_hooks else ():
        if (result := hook(leaf)) is not None and result is not leaf:
            if not isinstance(result, Tensor):
                raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
            raise RuntimeError("Tensor post accumulate grad hooks should return None.")
        if (emit := journal.emit) is not None:
            emit((HookRan.code, "post-accumulate hook", 0, tensor_id(leaf)))


def _obeys(gradient: Tensor, leaf: Tensor) -> bool:
    """Whether the gradient's layout is what ``.grad`` should have: the leaf's where that is dense, else row-major."""
    sizes, strides = leaf._array.shape, leaf.strides
    if not is_non_overlapping_and_dense(sizes, strides):
        return is_contiguous(sizes, gradient.strides)
    # A stride of 0 over one element is still that of an expanded tensor, which is nobody's own.
    return all(a == b if n > 1 else b for n, a, b in zip(sizes, strides, gradient.strides, strict=True))


def _warn_of_layout(gradient: Tensor, leaf: Tensor) -> None:
    warn_once(
        internal(
            "grad and param do not obey the gradient layout contract. This is not an error, but may impair "
            f"performance.\ngrad.sizes() = {list(gradient._array.shape)}, strides() = {list(gradient.strides)}\n"
            f"param.sizes() = {list(leaf._array.shape)}, strides() = {list(leaf.strides)}",
            "torch/csrc/autograd/functions/accumulate_grad.h:235",
        )
    )


def _relaid(gradient: Tensor, leaf: Tensor) -> Tensor:
    sizes, strides = leaf._array.shape, leaf.strides
    if is_non_overlapping_and_dense(sizes, strides):
        return _blank(sizes, strides, gradient).copy_(gradient)  # type: ignore[no-any-return]
    return gradient.clone().contiguous()  # type: ignore[no-any-return]


def _blank(sizes: tuple[int, ...], strides: tuple[int, ...], like: Tensor) -> Tensor:
    if grad_mode.shown is None:
        return blank(sizes, strides, like)
    options = {"dtype": like.dtype, "layout": strided, "device": like.device}
    made: Tensor = grad_mode.shown.call(
        "new_empty_strided", (like, list(sizes), list(strides)), options, lambda: blank(sizes, strides, like)
    )
    return made


__all__ = ["accumulate", "run_post_accumulate_hooks", "summed", "with_mode"]
