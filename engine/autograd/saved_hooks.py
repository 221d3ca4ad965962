"""``torch.autograd.graph``'s hooks on saved tensors: pack and unpack, on the CPU, forbidden, or kept from writes."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from stridescope.engine.autograd import history
from stridescope.engine.autograd.saved import SavedHooks
from stridescope.engine.device import CPU
from stridescope.engine.tensor import Tensor


class saved_tensors_hooks:  # noqa: N801
    """Inside the block, what is saved for backward passes through ``pack_hook``, and ``unpack_hook`` gives it back."""

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        if not callable(self.pack_hook) or not callable(self.unpack_hook):
            raise TypeError(
                "_push_saved_tensors_default_hooks(): incompatible function arguments. The following argument types "
                "are supported:\n    1. (arg0: collections.abc.Callable, arg1: collections.abc.Callable) -> None\n\n"
                f"Invoked with: {self.pack_hook!r}, {self.unpack_hook!r}"
            )
        if SavedHooks.disabled is not None:
            raise RuntimeError(SavedHooks.disabled)
        SavedHooks.stack.append((self.pack_hook, self.unpack_hook))

    def __exit__(self, *exc: object) -> None:
        SavedHooks.stack.pop()


class save_on_cpu(saved_tensors_hooks):  # noqa: N801
    """Inside the block, what is saved for backward is kept in host memory and brought back when it is needed."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(self._away, self._back)

    @staticmethod
    def _away(tensor: Tensor) -> tuple[Any, Tensor]:
        return tensor.device, tensor.to(CPU) if tensor.device is not CPU else tensor.clone()

    @staticmethod
    def _back(packed: tuple[Any, Tensor]) -> Tensor:
        device, tensor = packed
        return tensor.to(device)  # type: ignore[no-any-return]


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Inside the block, entering ``saved_tensors_hooks`` raises RuntimeError with this message."""
    before = SavedHooks.disabled
    if SavedHooks.stack:
        raise RuntimeError(error_message)
    SavedHooks.disabled = error_message
    try:
        yield
    finally:
        SavedHooks.disabled = before


class _Kept:
    """A saved tensor as it was: the tensor itself until someone writes into it, then a copy from before."""

    __slots__ = ("__weakref__", "tensor", "version")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor, self.version = tensor, tensor.version_counter.value


class _AllowMutationOnSavedContext:
    """The state of one ``allow_mutation_on_saved_tensors`` block."""

    active: _AllowMutationOnSavedContext | None = None

    def __init__(self) -> None:
        self.kept: dict[int, list[weakref.ref[_Kept]]] = {}

    def pack(self, tensor: Tensor) -> _Kept:
        """Remember a tensor that is saved."""
        kept = _Kept(tensor)
        self.kept.setdefault(id(tensor.storage_), []).append(weakref.ref(kept))
        return kept

    def unpack(self, kept: _Kept) -> Tensor:
        """What was saved, as it was."""
        if _AllowMutationOnSavedContext.active is not self:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin which the graph was "
                "originally recorded."
            )
        return kept.tensor

    def before_write(self, target: Tensor) -> None:
        """Copy what was saved of this storage at this version."""
        version = target.version_counter.value
        for reference in self.kept.pop(id(target.storage_), ()):
            kept = reference()
            if kept is not None and kept.version == version and kept.tensor.storage_ is target.storage_:
                kept.tensor = kept.tensor.clone()


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_AllowMutationOnSavedContext]:
    """Inside the block, saved tensors may be written in place: backward uses a copy from before the write."""
    if _AllowMutationOnSavedContext.active is not None:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    guard = _AllowMutationOnSavedContext()
    with saved_tensors_hooks(guard.pack, guard.unpack):
        _AllowMutationOnSavedContext.active = guard
        history.before_write.append(guard.before_write)
        try:
            yield guard
        finally:
            history.before_write.remove(guard.before_write)
            _AllowMutationOnSavedContext.active = None


for _class in (saved_tensors_hooks, save_on_cpu):
    _class.__module__ = "torch.autograd.graph"
