"""What a node keeps of the forward pass: saved tensors, each with the version it must still have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stridescope.engine.autograd.modes import anomaly, grad_mode
from stridescope.engine.events import TensorSaved, journal
from stridescope.engine.tensor import Tensor, alias, tensor_id

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
    "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
    "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
    "saved tensors after calling backward."
)

Hooks = tuple[Callable[[Any], Any], Callable[[Any], Any]]


class SavedHooks:
    """The stack of ``torch.autograd.graph.saved_tensors_hooks``: (pack, unpack) pairs, innermost last."""

    stack: list[Hooks] = []
    disabled: str | None = None


class SavedVariable:
    """One saved tensor.

    An input is kept as it is. An output would tie a knot with its own node, so an alias without history is kept and
    gets its node back when it is unpacked. Raises RuntimeError when unpacked after an in-place write, or after the
    graph was freed.
    """

    __slots__ = ("__weakref__", "_hooks", "_is_output", "_node", "_output_nr", "_packed", "_tensor", "_version")

    def __init__(self, tensor: Tensor, is_output: bool = False) -> None:
        counter = tensor._version_counter
        self._version = 0 if counter is None else counter.value
        self._hooks: Hooks | None = None
        self._packed: Any = None
        self._is_output = is_output and not tensor.is_leaf
        self._output_nr = tensor._output_nr
        self._node: Any = None
        self._tensor: Tensor | None = without_history(tensor) if self._is_output else tensor
        if SavedHooks.stack:
            self.register_hooks(*SavedHooks.stack[-1])

    def register_hooks(self, pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> None:
        """Let ``pack`` turn the tensor into what is kept, and ``unpack`` turn that back into a tensor."""
        tensor = self._tensor
        if tensor is None:
            raise RuntimeError(
                "Calling register_hook on a saved tensor after it has been freed. " + FREED
                if self._hooks is None
                else "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair "
                "of hooks is allowed at a time."
            )
        before = tensor._version_counter.value if tensor._version_counter else 0
        enabled, grad_mode.enabled = grad_mode.enabled, False
        try:
            self._packed = pack(tensor)
        finally:
            grad_mode.enabled = enabled
        if (tensor._version_counter.value if tensor._version_counter else 0) != before:
            raise RuntimeError("A saved tensor pack hook is modifying its input in place. Tensors provided as input "
                               "to pack hook can not be modified by in-place operations as this can lead to "
                               "unexpected side-effects. Please open an issue if you need to perform in-place "
                               "operations on the input to a pack hook.")  # fmt: skip
        self._hooks, self._tensor = (pack, unpack), None
        self._node = None if self._is_output or tensor._node is None else tensor._node

    def release(self) -> None:
        """Let go of the tensor: the graph is freed."""
        self._tensor = self._packed = self._hooks = self._node = None

    def unpack(self, node: Any) -> Tensor:
        """Return the tensor for ``node``'s formula; ``node`` is the one that saved it."""
        if self._hooks is not None:
            return self._restore(self._hooks[1](self._packed), node)
        tensor = self._tensor
        if tensor is None:
            raise RuntimeError(FREED)
        counter = tensor._version_counter
        if counter is not None and counter.value != self._version:
            raise RuntimeError(self._conflict(tensor, node, counter.value))
        return self._restore(tensor, node) if self._is_output else tensor

    def _restore(self, tensor: Any, node: Any) -> Tensor:
        if not isinstance(tensor, Tensor):
            raise TypeError("Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                            + type(tensor).__name__)  # fmt: skip
        source = node if self._is_output else self._node
        if source is None:
            return tensor
        restored = alias(tensor)
        restored._requires_grad, restored._node, restored._output_nr = True, source, self._output_nr
        return restored

    def _conflict(self, tensor: Tensor, node: Any, version: int) -> str:
        kind = _TYPE_NAMES.get(tensor.dtype.name, "Float")
        prefix = "torch.cuda." if tensor.device.type == "cuda" else "torch."
        where = ""
        maker = node if self._is_output else tensor._node
        if maker is not None:
            where = f", which is output {self._output_nr} of {maker.name()},"
        hint = (
            "Hint: the backtrace further above shows the operation that failed to compute its gradient. The variable "
            "in question was changed in there or anywhere later. Good luck!"
            if anomaly.enabled
            else "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
            "torch.autograd.set_detect_anomaly(True)."
        )
        return (
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[{prefix}{kind}Tensor {list(tensor._array.shape)}]{where} is at version {version}; expected version "
            f"{self._version} instead. {hint}"
        )


_TYPE_NAMES = {
    "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long", "float16": "Half",
    "float32": "Float", "float64": "Double", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
    "bool": "Bool", "bfloat16": "BFloat16",
}  # fmt: skip


def without_history(tensor: Tensor) -> Tensor:
    """An alias of ``tensor`` that autograd does not know."""
    return alias(tensor)


def record_saved(node: Any, field: str, tensor: Tensor, version: int, is_output: bool) -> None:
    """Tell the recording that ``node`` keeps ``tensor`` for backward."""
    if (emit := journal.emit) is not None:
        storage = tensor.storage_
        tid = tensor_id(tensor)
        emit((TensorSaved.code, node.id, field, tid, storage.announce(), storage.nbytes, version, is_output))
