"""``torch.backends``: what scripts ask of, and tell, the libraries that PyTorch computes with.

None of them computes here. The switches keep what they are told, and the answers are those of PyTorch's CPU build.
"""

from __future__ import annotations

from stridescope.engine.torch._not_yet import missing_from
from stridescope.engine.torch.backends import (
    cpu,
    cuda,
    cudnn,
    mha,
    mkl,
    mkldnn,
    mps,
    nnpack,
    openmp,
    opt_einsum,
    quantized,
)

__all__ = [
    "cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "nnpack", "openmp", "opt_einsum", "quantized",
]  # fmt: skip
__getattr__ = missing_from("torch.backends")
