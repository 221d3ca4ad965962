"""``torch.ops``: the ops as objects, by namespace: ``aten``, and those that the script makes with ``torch.library``."""

from __future__ import annotations

from typing import Any

from stridescope.engine.torch._custom_ops import namespace_of
from stridescope.engine.torch._not_yet import attribute_of
from stridescope.engine.torch._ops import aten

__all__ = ["aten"]
# PyTorch's own namespaces that are not here.
ABSENT = frozenset({
    "c10d", "higher_order", "inductor", "mkl", "mkldnn", "onnx", "prim", "prims", "profiler", "quantized",
    "quantized_decomposed", "rngprims", "torchvision", "xnnpack",
})  # fmt: skip
_missing = attribute_of("torch.ops")


def __getattr__(name: str) -> Any:
    return _missing(name) if name in ABSENT or name.startswith("_") else namespace_of(name)
