"""What users call: ``backward``, ``torch.autograd.grad``, hooks, ``requires_grad_``, ``retain_grad``, ``.grad``."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from typing import Any

from stridescope.engine.autograd.backward import execute
from stridescope.engine.autograd.node import NodeHooks, accumulator, gradient_edge
from stridescope.engine.events import GradSet, RequiresGradSet, journal
from stridescope.engine.tensor import Tensor, tensor_id

_hook_ids = itertools.count()


class RemovableHandle:
    """What ``register_hook`` returns: ``remove()`` takes the hook out again; also a context manager."""

    def __init__(self, hooks: dict[int, Any]) -> None:
        self.id = next(_hook_ids)
        self._hooks = weakref.ref(hooks) if not isinstance(hooks, dict) else lambda: hooks

    def remove(self) -> None:
        """Take the hook out."""
        hooks = self._hooks()
        if hooks is not None:
            hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Compute the gradients of ``self`` with respect to the leaves and add them to their ``.grad``."""
    backward_many((self,), gradient, retain_graph, create_graph, inputs)


def backward_many(
    tensors: Sequence[Tensor],
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """``torch.autograd.backward``."""
    tensors = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
    given = (grad_tensors,) if grad_tensors is None or isinstance(grad_tensors, Tensor) else tuple(grad_tensors)
    gradients = [start(t, g) for t, g in zip(tensors, given, strict=False)]
    roots = [root(t) for t in tensors]
    keep = create_graph if retain_graph is None else retain_graph
    edges = None
    if inputs is not None:
        edges = [gradient_edge(i) for i in ((inputs,) if isinstance(inputs, Tensor) else inputs)]
    execute(
        roots, gradients, keep_graph=keep, create_graph=create_graph, inputs=edges, accumulate_into_inputs=bool(edges)
    )


def root(tensor: Tensor) -> Any:
    """The edge where a backward pass starts."""
    edge = gradient_edge(tensor)
    if edge[0] is None:
        raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
    return edge


def start(tensor: Tensor, gradient: Tensor | None) -> Tensor:
    """The gradient a pass starts with: the given one, or 1 for a scalar."""
    if gradient is None:
        if tensor._array.size != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        return tensor.new_ones(tensor._array.shape)  # type: ignore[no-any-return]
    if gradient._array.shape != tensor._array.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[0] has a shape of {gradient.shape} and output[0] has a shape of "
            f"{tensor.shape}."
        )
    return gradient


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Switch gradients for a leaf on or off; raises RuntimeError for non-leaves and integer tensors."""
    if self._node is not None and not requires_grad:
        raise RuntimeError("you can only change requires_grad flags of leaf variables. If you want to use a computed "
                           "variable in a subgraph that doesn't require differentiation use var_no_grad = "
                           "var.detach().")  # fmt: skip
    if requires_grad and self.dtype.category < 2:
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    if self._node is None and self._requires_grad != requires_grad:
        self._requires_grad = requires_grad
        if self._id and (emit := journal.emit) is not None:
            emit((RequiresGradSet.code, self._id, requires_grad))
    return self


def hooks_of(tensor: Tensor) -> NodeHooks:
    """The hooks of the node a tensor's gradient goes to."""
    node = tensor._node if tensor._node is not None else accumulator(tensor)
    if tensor._node is None:
        tensor._hooks = node  # the leaf keeps its accumulator, and so the hooks, alive
    if node.hooks is None:
        node.hooks = NodeHooks()
    return node.hooks  # type: ignore[no-any-return]


def register_hook(self: Tensor, hook: Any) -> RemovableHandle:
    """Call ``hook(grad)`` whenever the gradient of this tensor is computed; it may return another gradient."""
    if not self._requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    registered = hooks_of(self).tensor.setdefault(self._output_nr, {})
    handle = RemovableHandle(registered)
    registered[handle.id] = hook
    return handle


def retain_grad(self: Tensor) -> None:
    """Keep the gradient of a non-leaf in its ``.grad``."""
    if not self._requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if self._node is not None and not self._retains_grad:
        hooks_of(self).retain[self._output_nr] = weakref.ref(self)
        self._retains_grad = True


def grad_setter(self: Tensor, value: Tensor | None) -> None:
    """``tensor.grad = value``."""
    self._grad = value
    if self._id and (emit := journal.emit) is not None:
        emit((GradSet.code, self._id, 0 if value is None else tensor_id(value)))
