"""Tensors on the device ``meta`` have no values: what PyTorch refuses because a result would depend on them."""

from __future__ import annotations

from stridescope.engine.tensor import Tensor

_NO_KERNEL = (
    "aten::{op}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel "
    "registered. You may have run into this message while using an operator with PT2 compilation APIs "
    "(torch.compile/torch.export); in order to use this operator with those APIs you'll need to add a fake impl. "
    "Please see the following for next steps:  https://pytorch.org/tutorials/advanced/custom_ops_landing_page.html"
)
_NO_NONZERO = (
    "The register_meta function for torch.nonzero() raises unimplemented by default, as a correct data-independent "
    "implementation does not exist. This implementation returns a fake value, assuming all elements of the tensor are "
    "non-zero. To enable this registration, please set 'torch.fx.experimental._config.meta_nonzero_assume_all_nonzero' "
    "to True."
)


def is_meta(tensor: Tensor) -> bool:
    """Say whether a tensor has no values."""
    return tensor.device.type == "meta"


def need_values(op: str, *tensors: Tensor | None) -> None:
    """Refuse tensors without values; ``op`` is the name that PyTorch gives. Raises NotImplementedError."""
    if any(tensor is not None and is_meta(tensor) for tensor in tensors):
        raise NotImplementedError(_NO_NONZERO if op == "nonzero" else _NO_KERNEL.format(op=op))
