"""Tensor methods about a GPU's view of memory: which streams use it, and whether the host keeps it pinned."""

from __future__ import annotations

from typing import Any

from stridescope.engine.device import CPU
from stridescope.engine.dispatch.pinned import pin, pinned_block
from stridescope.engine.dtype import scalar_name
from stridescope.engine.tensor import Tensor, fresh


def _pin_memory(self: Tensor, device: Any = None) -> Tensor:
    if self.device is not CPU:
        kind = f"torch.{'cuda.' if self.device.type == 'cuda' else ''}{scalar_name(self.dtype)}Tensor"
        raise RuntimeError(f"cannot pin '{kind}' only dense CPU tensors can be pinned")
    if pinned_block(self) is not None:
        return self
    return pin(fresh(self._array.copy(order="K"), self.dtype))


def _record_stream(self: Tensor, stream: Any) -> None:
    if self.device.type != "cuda":
        raise NotImplementedError(
            "Could not run 'aten::record_stream' with arguments from the 'CPU' backend: only memory of a GPU is used "
            "by streams."
        )
    storage = self._storage
    if storage is not None and storage.block is not None:
        storage.allocator.record_stream(storage.block, stream.cuda_stream)  # type: ignore[attr-defined]


METHODS: dict[str, Any] = {
    "is_pinned": lambda self, device=None: pinned_block(self) is not None,
    "pin_memory": _pin_memory,
    "record_stream": _record_stream,
}
