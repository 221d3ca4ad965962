"""What a node keeps of the forward pass: saved tensors, each with the version it must still have."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from stridescope.engine.announce import storage_facts, tensor_id
from stridescope.engine.autograd.modes import anomaly, grad_mode
from stridescope.engine.autograd.node import accumulator as accumulator_of
from stridescope.engine.autograd.node import forward_name, node_id
from stridescope.engine.events import TensorSaved, journal
from stridescope.engine.tensor import Tensor, alias

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
    "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
    "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
    "saved tensors after calling backward."
)

Hooks = tuple[Callable[[Any], Any], Callable[[Any], Any]]


def _alias(tensor: Tensor) -> Tensor:
    """The tensor without history, which PyTorch gets by ``detach``."""
    if grad_mode.shown is None:
        return alias(tensor)
    made: Tensor = grad_mode.shown.call("detach", (tensor,), {}, lambda: alias(tensor))
    return made


class SavedHooks:
    """The stack of ``torch.autograd.graph.saved_tensors_hooks``: (pack, unpack) pairs, innermost last."""

    stack: list[Hooks] = []
    disabled: str | None = None


class SavedTensor:
    """One saved tensor.

    An input is kept as it is. An output would tie a knot with its own node, so an alias without history is kept and
    gets its node back when it is unpacked. Raises RuntimeError when unpacked after an in-place write, or after the
    graph was freed.
    """

    __slots__ = (
        "__weakref__", "_accumulator", "_hooks", "_is_leaf", "_is_output", "_node", "_output_nr", "_packed",
        "_requires_grad", "_tensor", "_version",
    )  # fmt: skip

    def __init__(self, tensor: Tensor, is_output: bool = False) -> None:
        if tensor._inference and not grad_mode.inference:
            raise RuntimeError(
                "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode "
                "in computation tracked by autograd. To work around this, you can make a clone to get a normal tensor "
                "and use it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
            )
        counter = tensor._version_counter
        self._version = 0 if counter is None else counter.value
        self._hooks: Hooks | None = None
        self._is_leaf = tensor._node is None
        self._is_output = is_output = is_output and not self._is_leaf
        self._output_nr = tensor._output_nr
        self._node: Any = None
        if SavedHooks.stack:
            self._pack(tensor, SavedHooks.stack[-1])
        else:
            self._tensor: Tensor | None = _alias(tensor) if is_output else tensor

    @classmethod
    def of_nothing(cls, number: Any = None) -> SavedTensor:
        """What stands for an optional tensor that was not given, or for a number given in a tensor's place."""
        nothing = cls.__new__(cls)
        nothing._tensor = nothing._hooks = nothing._node = number
        return nothing

    def register_hooks(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        """Let ``pack_hook`` turn the tensor into what is kept, and ``unpack_hook`` turn that back into a tensor."""
        for hook in (pack_hook, unpack_hook):
            if not callable(hook):
                raise TypeError(
                    "register_hooks(): incompatible function arguments. The following argument types are supported:\n"
                    "    1. (self: torch._C._autograd.SavedTensor, arg0: collections.abc.Callable, arg1: "
                    "collections.abc.Callable) -> None\n\nInvoked with: "
                    f"{self!r}, {pack_hook!r}, {unpack_hook!r}"
                )
        if self._hooks is not None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of "
                "hooks is allowed at a time."
            )
        if self._tensor is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the "
                "graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need "
                "to backward through the graph a second time or if you need to access saved variables after calling "
                "backward."
            )
        self._pack(self._tensor, (pack_hook, unpack_hook))

    def _pack(self, tensor: Tensor, hooks: Hooks) -> None:
        """Keep what the pack hook gives, and of the tensor only its place in the graph."""
        self._hooks, self._tensor = hooks, None
        self._requires_grad = tensor._requires_grad
        self._accumulator = accumulator_of(tensor) if self._is_leaf and tensor._requires_grad else None
        self._node = None if self._is_output else tensor._node
        before = tensor.version_counter.value
        enabled, grad_mode.enabled = grad_mode.enabled, False
        try:
            self._packed: Any = hooks[0](tensor)
        finally:
            grad_mode.enabled = enabled
        if tensor.version_counter.value != before:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook "
                "cannot be modified by in-place operations as this can lead to unexpected side-effects. Please open an "
                "issue if you need to perform in-place operations on the input to a pack hook."
            )

    def bind(self, node: Any) -> None:
        """The tensor is the view that ``node`` (held weakly) will be the grad_fn of, not an output of the saver."""
        if self._is_output:
            self._node, self._output_nr = weakref.ref(node), 0

    def release(self) -> None:
        """Let go of the tensor: the graph is freed."""
        self._tensor = self._packed = self._hooks = self._node = self._accumulator = None

    def unpack(self, node: Any) -> Tensor:
        """Return the tensor for ``node``'s formula; ``node`` is the one that saved it."""
        hooks = self._hooks
        if hooks is not None:
            return self._restored(self._unpacked(hooks[1]), node)
        tensor = self._tensor
        if tensor is None:
            raise RuntimeError(FREED)
        detached = not (self._is_output or self._is_leaf) and tensor._node is None
        if detached and (node is None or not node.stands_in):
            raise RuntimeError(
                "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_().This is not "
                "supported, please use out-of-place `.detach()` instead"
            )
        counter = tensor._version_counter
        if counter is not None and counter.value != self._version:
            raise RuntimeError(self._conflict(tensor, node, counter.value))
        if self._is_output:
            return self._restored(tensor, node)
        return self._with_history(tensor, node) if detached else tensor

    def _unpacked(self, unpack: Callable[[Any], Any]) -> Tensor:
        tensor = unpack(self._packed)
        if not isinstance(tensor, Tensor):
            raise TypeError("Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                            + type(tensor).__name__)  # fmt: skip
        return tensor

    def _restored(self, tensor: Tensor, node: Any) -> Tensor:
        """The tensor with its place in the graph."""
        source = self._source(node)
        if source is None and not (self._hooks is not None and (self._requires_grad or tensor._requires_grad)):
            return tensor
        restored = self._with_history(tensor, source)
        if source is None and self._hooks is not None and self._accumulator is not None:
            restored._accumulator = weakref.ref(self._accumulator)
        return restored

    def _with_history(self, tensor: Tensor, source: Any) -> Tensor:
        restored = _alias(tensor) if self._is_output else alias(tensor)
        restored._node, restored._output_nr = source, self._output_nr
        restored._requires_grad = source is not None or self._requires_grad
        return restored

    def _source(self, node: Any) -> Any:
        if not self._is_output:
            return self._node
        # PyTorch's weak reference, too, may have lost the view's node; then it is as if the saver had made the tensor.
        return node if self._node is None else self._node() or node

    def _conflict(self, tensor: Tensor, node: Any, version: int) -> str:
        where = ""
        maker = self._source(node) if self._is_output else tensor.grad_fn
        if maker is not None:
            number = self._output_nr if self._is_output or self._hooks is not None else 0
            where = f", which is output {number} of {forward_name(maker)},"
        hint = (
            "Hint: the backtrace further above shows the operation that failed to compute its gradient. The variable "
            "in question was changed in there or anywhere later. Good luck!"
            if anomaly.enabled
            else "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
            "torch.autograd.set_detect_anomaly(True, check_nan=False)."
        )
        return (
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[{_type_name(tensor)} {list(tensor._array.shape)}]{where} is at version {version}; expected version "
            f"{self._version} instead. {hint}"
        )


def _type_name(tensor: Tensor) -> str:
    """The type as messages call it: that of Python, except for dtypes that had none there."""
    kind, on_gpu = TYPE_NAMES[tensor.dtype.name], tensor.device.type == "cuda"
    if tensor.dtype.is_complex or tensor.dtype.name == "bfloat16":
        return f"{'CUDA' if on_gpu else 'CPU'}{kind}Type"
    return f"torch.{'cuda.' if on_gpu else ''}{kind}Tensor"


def kept(name: str, value: Any) -> Any:
    """What a node keeps of an argument, where no hooks pack it and no event of its own tells of it.

    A tensor that was never written in place is kept bare, for that is nearly every one and a SavedTensor costs what a
    small kernel does; :func:`spelled_out` gives the SavedTensor that it stands for.
    """
    if isinstance(value, Tensor):
        counter = value._version_counter
        written = counter is not None and counter.value
        return SavedTensor(value) if written or not value._plain or value._detached else value
    if isinstance(value, (list, tuple)) and any(isinstance(item, Tensor) for item in value):
        return [kept(name, item) for item in value]
    return value


def kept_result(value: Any) -> Any:
    """What a node keeps of its own result under the same conditions: the values, without the way back to the node."""
    if not isinstance(value, Tensor) or not value._plain:
        return SavedTensor(value, True) if isinstance(value, Tensor) else value
    one = SavedTensor.of_nothing()
    one._tensor = made = _alias(value)
    one._version = made._version_counter.value  # type: ignore[union-attr]
    one._is_leaf, one._is_output, one._output_nr = False, True, value._output_nr
    return one


def spelled_out(bare: Tensor) -> SavedTensor:
    """The SavedTensor of a tensor that is kept bare: saved at version 0, and no leaf if it was detached since."""
    one = SavedTensor.of_nothing()
    one._tensor, one._version, one._output_nr = bare, 0, bare._output_nr
    one._is_leaf, one._is_output = bare._node is None and not bare._detached, False
    return one


def unpacked(kept: Any, node: Any) -> Any:
    """A saved value for a formula; raises RuntimeError when the tensor was overwritten since."""
    if isinstance(kept, Tensor):
        counter = kept._version_counter
        if (counter is None or not counter.value) and not kept._detached:
            return kept
        return spelled_out(kept).unpack(node)
    if kept.__class__ is SavedTensor:
        return kept.unpack(node)
    if kept.__class__ is list:
        return [unpacked(item, node) for item in kept]
    if kept is RELEASED:
        raise RuntimeError(FREED)
    return kept


def read(kept: Any, node: Any) -> Any:
    """The same where the formula is not recorded: a result comes without its history, for nobody asks for that."""
    if kept.__class__ is SavedTensor and kept._is_output and kept._hooks is None:
        tensor: Tensor | None = kept._tensor
        if tensor is not None and tensor._version_counter.value == kept._version:  # type: ignore[union-attr]
            return tensor
    return unpacked(kept, node)


RELEASED = object()  # stands where a number or a bare tensor was kept
SavedTensor.__module__ = "torch._C._autograd"

# How messages of the C++ part call tensors of a dtype: torch.FloatTensor.
TYPE_NAMES = {
    "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long", "float16": "Half",
    "float32": "Float", "float64": "Double", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
    "bool": "Bool", "bfloat16": "BFloat16",
}  # fmt: skip


def record_saved(node: Any, field: str, tensor: Tensor, version: int, is_output: bool) -> None:
    """Tell the recording that ``node`` keeps ``tensor`` for backward."""
    if (emit := journal.emit) is not None:
        tid, number = tensor_id(tensor), node_id(node)
        emit((TensorSaved.code, number, field, tid, *storage_facts(tensor), version, is_output))
