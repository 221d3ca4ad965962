"""What a tensor is asked to do by autograd: require grad, keep its gradient, call hooks, leave the graph."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Any

from stridescope.engine.announce import tensor_id
from stridescope.engine.autograd.edges import grad_fn_of, info_of, spread_requires_grad
from stridescope.engine.autograd.handle import RemovableHandle, registered
from stridescope.engine.autograd.lockstep import batch_of
from stridescope.engine.autograd.modes import grad_mode, transforms
from stridescope.engine.autograd.node import hooks_of
from stridescope.engine.events import GradSet, RequiresGradSet, journal
from stridescope.engine.storage import Version
from stridescope.engine.tensor import Tensor, alias

NOT_A_LEAF = (
    "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph "
    "that doesn't require differentiation use var_no_grad = var.detach()."
)


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Switch gradients for a leaf on or off; raises RuntimeError for non-leaves and integer tensors."""
    if transforms:
        raise RuntimeError(
            "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) "
            "inside of a function being transformed by a functorch transform. This is unsupported, please attempt to "
            "use the functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside "
            "of a function being transformed instead."
        )
    _switch(self, requires_grad, "only Tensors of floating point dtype can require gradients")
    return self


def leaf_at(tensor: Tensor) -> Any:
    """A leaf at the tensor's place: another one on its memory, without its history, that requires grad."""
    made = alias(tensor)
    made._requires_grad = True
    return made


def require_grad(tensor: Tensor) -> None:
    """Make a tensor that a factory has just made a leaf that requires grad (``requires_grad=True``)."""
    if tensor.dtype.category < 2:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    tensor._requires_grad = True


def _is_shown(tensor: Tensor) -> bool:
    """Whether the history is the script's own: not that of a vmap's examples, which leads out of the vmap."""
    batch = batch_of(tensor)
    return batch is None or bool(transforms) and batch.level is not getattr(transforms[-1], "__self__", None)


def _requires_grad(self: Tensor) -> bool:
    return self._requires_grad and _is_shown(self)


def _grad_fn(self: Tensor) -> Any:
    return grad_fn_of(self) if _is_shown(self) else None


def set_requires_grad(self: Tensor, value: Any) -> None:
    """``tensor.requires_grad = value``."""
    if not isinstance(value, bool):
        raise RuntimeError("requires_grad must be a bool")
    if value and self._node is not None:
        raise RuntimeError("you can only change requires_grad flags of leaf variables.")
    _switch(self, value, "only Tensors of floating point and complex dtype can require gradients")


def _switch(tensor: Tensor, value: bool, refusal: str) -> None:
    if tensor._node is not None:
        if not value:
            raise RuntimeError(NOT_A_LEAF)
        return
    if value and tensor.dtype.category < 2:
        raise RuntimeError(refusal)
    if value and tensor._inference and not grad_mode.inference:
        raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
    base = tensor._base_tensor
    if base is not None and tensor._requires_grad and base._requires_grad:
        info_of(tensor).inherited = not value  # it requires grad anyway, for its base does: or also in its own right
    elif tensor._requires_grad != value:
        tensor._requires_grad = value
        if tensor._id and (emit := journal.emit) is not None:
            emit((RequiresGradSet.code, tensor._id, value))
        spread_requires_grad(tensor, value)


def register_hook(self: Tensor, hook: Any) -> RemovableHandle:
    """Call ``hook(grad)`` whenever the gradient of this tensor is computed; it may return another gradient."""
    if not self._requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    node = grad_fn_of(self)
    if self._hooks is None:
        self._hooks = OrderedDict()
        if node is not None:
            hooks_of(node).tensor.append((self._output_nr, self._hooks))
    return registered(self._hooks, hook)


def register_post_accumulate_grad_hook(self: Tensor, hook: Any) -> RemovableHandle:
    """Call ``hook(tensor)`` after a gradient was added to this leaf's ``.grad``."""
    if not self._requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if grad_fn_of(self) is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    if self._post_hooks is None:
        self._post_hooks = OrderedDict()
    return registered(self._post_hooks, hook)


def retain_grad(self: Tensor) -> None:
    """Keep the gradient of a non-leaf in its ``.grad``."""
    if not self._requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if self._node is not None and not self._retains_grad:
        node = grad_fn_of(self)
        assert node is not None
        hooks_of(node).retain[self._output_nr] = weakref.ref(self)
        self._retains_grad = True


def set_grad(self: Tensor, value: Tensor | None) -> None:
    """``tensor.grad = value``, already checked."""
    self._grad = value
    if self._id and (emit := journal.emit) is not None:
        emit((GradSet.code, self._id, 0 if value is None else tensor_id(value)))


def detach_(self: Tensor) -> Tensor:
    """Take this tensor itself out of the graph; raises RuntimeError for views."""
    if self._base_tensor is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
            "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence "
            "detach_() cannot be called on these gradients. To fix this error, please refer to the "
            "Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."
        )
    self._detached = self._detached or self._node is not None
    self._node, self._requires_grad, self._output_nr = None, False, 0  # that it retains its grad is not forgotten
    spread_requires_grad(self, False)
    if self._id and (emit := journal.emit) is not None:
        emit((RequiresGradSet.code, self._id, False))
    return self


def shallow_copy(self: Tensor) -> Tensor:
    """``copy.copy(tensor)``: a leaf on the same storage, as PyTorch builds it anew from the storage."""
    copied = alias(self)
    copied.__class__ = self.__class__
    copied._requires_grad = self._requires_grad
    copied._version_counter = Version()
    copied._version_counter.value = 1
    return copied


def version_of(self: Tensor) -> int:
    """``tensor._version``."""
    if self._inference:
        raise RuntimeError("Inference tensors do not track version counter.")
    return self.version_counter.value


METHODS: dict[str, Any] = {
    "grad_fn": property(_grad_fn),
    "is_leaf": property(lambda self: grad_fn_of(self) is None),
    "_version": property(version_of),
    "requires_grad": property(_requires_grad, set_requires_grad),
    "_backward_hooks": property(lambda self: self._hooks, lambda self, hooks: setattr(self, "_hooks", hooks)),
    "_post_accumulate_grad_hooks": property(
        lambda self: self._post_hooks, lambda self, hooks: setattr(self, "_post_hooks", hooks)
    ),
    "requires_grad_": requires_grad_,
    "register_hook": register_hook,
    "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
    "retain_grad": retain_grad,
    "__copy__": shallow_copy,
    "detach_": detach_,
}
