"""``torch.utils.module_tracker``: which modules an op belongs to, in the forward pass and in the backward pass."""

from __future__ import annotations

import weakref
from typing import Any, Self

from stridescope.engine.autograd.graph import register_multi_grad_hook
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._not_yet import missing_from
from stridescope.engine.torch.autograd.variable import Variable
from stridescope.engine.torch.nn.modules.everywhere import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from stridescope.engine.torch.utils._pytree import tree_leaves

ROOT = "Global"


class ModuleTracker:
    """Inside the block, ``parents`` holds the full names of the modules at work, and "Global".

    Attributes:
        parents: the names; ``is_bw`` says whether a backward pass runs.
    """

    def __init__(self) -> None:
        self.parents: set[str] = {ROOT}
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._handles: list[Any] = []
        self._waiting = False

    def __enter__(self) -> Self:
        self._handles = [
            register_module_forward_pre_hook(self._began),
            register_module_forward_hook(self._ended, always_call=True),
        ]
        return self

    def __exit__(self, *exc: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass runs."""
        from stridescope.engine.torch._C import _current_graph_task_id

        return bool(_current_graph_task_id() != -1)

    def _name_of(self, module: Any) -> str:
        """The module's name: its class where nobody named it before, and the path from there for what is inside."""
        if module not in self._names:
            self._names[module] = type(module).__name__
        name = self._names[module]
        for child, inner in module.named_children():
            self._names.setdefault(inner, f"{name}.{child}")
        return name

    def _began(self, module: Any, inputs: Any) -> None:
        name = self._name_of(module)
        self.parents.add(name)
        if tensors := _tracked(inputs):
            self._handles.append(register_multi_grad_hook(tensors, lambda grads: self.parents.discard(name)))

    def _ended(self, module: Any, inputs: Any, output: Any) -> None:
        name = self._name_of(module)
        self.parents.discard(name)
        if tensors := _tracked(output):
            self._handles.append(register_multi_grad_hook(tensors, lambda grad: self._began_backward(name), mode="any"))

    def _began_backward(self, name: str) -> None:
        if not self._waiting:
            Variable._execution_engine.queue_callback(self._backward_ended)
            self._waiting = True
        self.parents.add(name)

    def _backward_ended(self) -> None:
        self.parents = {ROOT}
        self._waiting = False


def _tracked(values: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor) and leaf.requires_grad]


__getattr__ = missing_from("torch.utils.module_tracker")

__all__ = ["ModuleTracker"]
