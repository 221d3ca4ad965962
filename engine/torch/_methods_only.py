"""Ops that are not functions of ``torch``: in-place forms that only tensors have, and what PyTorch keeps inside."""

from __future__ import annotations

METHODS_ONLY = frozenset(
    (
        "absolute_", "add_", "addcdiv_", "addcmul_", "arctan2_", "atan2_", "bitwise_and_",
        "bitwise_left_shift_", "bitwise_not_", "bitwise_or_", "bitwise_right_shift_", "bitwise_xor_",
        "copysign_", "digamma_", "div_", "divide_", "erfinv_", "fill_diagonal_", "floor_divide_", "fmod_",
        "heaviside_", "hypot_", "igamma_", "igammac_", "index_add_", "index_copy_", "index_reduce_", "lerp_",
        "lgamma_", "logical_and_", "logical_not_", "logical_or_", "logical_xor_", "masked_scatter_", "mul_",
        "multiply_", "nextafter_", "pow_", "put_", "remainder_", "renorm_", "scatter_", "scatter_add_",
        "scatter_reduce_", "sgn_", "sign_", "sub_", "subtract_", "tril_", "triu_", "true_divide_",
        "diagonal_backward", "pad_sequence", "select_backward", "slice_backward", "unfold_backward",
        "unique_dim",
    )
)  # fmt: skip
