"""``torch.backends.cuda``: how products and attention would be computed on a GPU; here there is one way only."""

from __future__ import annotations

from stridescope.engine.torch._not_yet import missing_from


class _Matmul:
    """``torch.backends.cuda.matmul``: which shortcuts matrix products may take."""

    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False


class _Attention:
    """Which kernels ``scaled_dot_product_attention`` may use."""

    flash = mem_efficient = math = cudnn = True


matmul = _Matmul()


def is_built() -> bool:
    """Always False, as in PyTorch's CPU build; ``torch.cuda.is_available()`` tells of the simulated GPU."""
    return False


def flash_sdp_enabled() -> bool:
    """Whether flash attention is allowed."""
    return _Attention.flash


def enable_flash_sdp(enabled: bool) -> None:
    """Allow or forbid flash attention."""
    _Attention.flash = bool(enabled)


def mem_efficient_sdp_enabled() -> bool:
    """Whether memory-efficient attention is allowed."""
    return _Attention.mem_efficient


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Allow or forbid memory-efficient attention."""
    _Attention.mem_efficient = bool(enabled)


def math_sdp_enabled() -> bool:
    """Whether attention written out in ops is allowed."""
    return _Attention.math


def enable_math_sdp(enabled: bool) -> None:
    """Allow or forbid attention written out in ops."""
    _Attention.math = bool(enabled)


def cudnn_sdp_enabled() -> bool:
    """Whether cuDNN's attention is allowed."""
    return _Attention.cudnn


def enable_cudnn_sdp(enabled: bool) -> None:
    """Allow or forbid cuDNN's attention."""
    _Attention.cudnn = bool(enabled)


__getattr__ = missing_from("torch.backends.cuda")
