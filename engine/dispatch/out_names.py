"""Which ops take ``out=`` in PyTorch's Python functions, how their error texts spell it, and what may be given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.dispatch.invalid_arguments import Mismatch, type_name
from stridescope.engine.tensor import Tensor, from_array

ONE = frozenset(
    """
    abs absolute acos acosh adaptive_avg_pool2d adaptive_avg_pool3d add.Tensor addbmm addcdiv addcmul addmm addmm.dtype
    addmv addr alias_copy all all.dim all.dims amax amin angle any any.dim any.dims arange arange.start_step arccos
    arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort.stable as_strided_copy asin asinh atan atan2
    atanh avg_pool2d avg_pool3d baddbmm baddbmm.dtype batch_norm_elemt bernoulli binary_cross_entropy
    bitwise_and.Scalar bitwise_and.Tensor bitwise_left_shift.Tensor bitwise_left_shift.Tensor_Scalar bitwise_not
    bitwise_or.Scalar bitwise_or.Tensor bitwise_right_shift.Tensor bitwise_right_shift.Tensor_Scalar bitwise_xor.Scalar
    bitwise_xor.Tensor bmm bmm.dtype bucketize.Tensor cat ceil chain_matmul cholesky cholesky_inverse cholesky_solve
    clamp clamp.Tensor clamp_max clamp_max.Tensor clamp_min clamp_min.Tensor clip clip.Tensor col2im column_stack
    complex concat concatenate conj_physical copysign.Scalar copysign.Tensor cos cosh cross cumprod cumsum deg2rad
    detach_copy diag diagonal_copy diff digamma div.Tensor div.Tensor_mode divide.Tensor divide.Tensor_mode dot dstack
    elu empty.memory_format eq.Scalar eq.Tensor erf erfc erfinv exp exp2 expand_copy expm1 eye eye.m fft_fft fft_fft2
    fft_fftfreq fft_fftn fft_hfft fft_hfft2 fft_hfftn fft_ifft fft_ifft2 fft_ifftn fft_ihfft fft_ihfft2 fft_ihfftn
    fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftfreq fft_rfftn fix float_power.Scalar
    float_power.Tensor_Scalar float_power.Tensor_Tensor floor floor_divide fmax fmin fmod.Scalar fmod.Tensor frac
    frobenius_norm.dim full gather gcd ge.Scalar ge.Tensor gelu ger glu greater.Scalar greater.Tensor
    greater_equal.Scalar greater_equal.Tensor gt.Scalar gt.Tensor hardshrink hardsigmoid hardswish hardtanh hash_tensor
    heaviside histc hspmm hstack huber_loss hypot i0 igamma igammac im2col index.Tensor index_add index_copy
    index_reduce index_select inner inverse isin.Scalar_Tensor isin.Tensor_Scalar isin.Tensor_Tensor isneginf isposinf
    kron lcm ldexp.Tensor le.Scalar le.Tensor leaky_relu lerp.Scalar lerp.Tensor less.Scalar less.Tensor
    less_equal.Scalar less_equal.Tensor lgamma linalg_cholesky linalg_cond linalg_cond.p_str linalg_cross linalg_det
    linalg_eigvals linalg_eigvalsh linalg_householder_product linalg_inv linalg_ldl_solve linalg_lu_solve linalg_matmul
    linalg_matrix_norm linalg_matrix_norm.str_ord linalg_matrix_power linalg_matrix_rank
    linalg_matrix_rank.atol_rtol_float linalg_matrix_rank.atol_rtol_tensor linalg_matrix_rank.tol_tensor
    linalg_multi_dot linalg_norm linalg_norm.ord_str linalg_pinv linalg_pinv.atol_rtol_float
    linalg_pinv.atol_rtol_tensor linalg_pinv.rcond_tensor linalg_solve linalg_solve_triangular linalg_svdvals
    linalg_tensorinv linalg_tensorsolve linalg_vecdot linalg_vector_norm linear linspace linspace.Scalar_Tensor
    linspace.Tensor_Scalar linspace.Tensor_Tensor log log10 log1p log2 log_sigmoid log_softmax.int logaddexp logaddexp2
    logcumsumexp logical_and logical_not logical_or logical_xor logit logspace logspace.Scalar_Tensor
    logspace.Tensor_Scalar logspace.Tensor_Tensor logsumexp lt.Scalar lt.Tensor lu_solve masked_select matmul
    matrix_power max max.other max_unpool2d max_unpool3d maximum mean mean.dim min min.other minimum mish mm mm.dtype
    mse_loss msort mul.Tensor multi_margin_loss multilabel_margin_loss multinomial multiply.Tensor mv mvlgamma
    nan_to_num nanmean nanquantile nanquantile.scalar nansum narrow_copy ne.Scalar ne.Tensor neg negative nextafter
    nll_loss nll_loss2d nonzero nonzero_static norm.ScalarOpt_dim norm.ScalarOpt_dim_dtype normal.Tensor_Tensor
    normal.Tensor_float normal.float_Tensor normal.float_float not_equal.Scalar not_equal.Tensor nuclear_norm
    nuclear_norm.dim ones orgqr ormqr outer permute_copy polar polygamma pow.Scalar pow.Tensor_Scalar
    pow.Tensor_Tensor prod.dim_int quantile quantile.scalar rad2deg rand randint randint.low randn randperm range
    range.step reciprocal reflection_pad1d reflection_pad2d reflection_pad3d remainder.Scalar remainder.Tensor
    renorm replication_pad1d replication_pad2d replication_pad3d round round.decimals row_stack rrelu_with_noise
    rsqrt scatter.reduce scatter.src scatter.value scatter.value_reduce scatter_add scatter_reduce.two
    searchsorted.Scalar searchsorted.Tensor select_copy.int sgn sigmoid sign signbit silu sin sinc sinh
    slice_copy.Tensor slice_scatter smooth_l1_loss soft_margin_loss softmax.int softplus softshrink special_airy_ai
    special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 special_chebyshev_polynomial_t
    special_chebyshev_polynomial_t.n_scalar special_chebyshev_polynomial_t.x_scalar special_chebyshev_polynomial_u
    special_chebyshev_polynomial_u.n_scalar special_chebyshev_polynomial_u.x_scalar special_chebyshev_polynomial_v
    special_chebyshev_polynomial_v.n_scalar special_chebyshev_polynomial_v.x_scalar special_chebyshev_polynomial_w
    special_chebyshev_polynomial_w.n_scalar special_chebyshev_polynomial_w.x_scalar special_digamma special_entr
    special_erf special_erfc special_erfcx special_erfinv special_exp2 special_expit special_expm1 special_gammainc
    special_gammaincc special_gammaln special_hermite_polynomial_h special_hermite_polynomial_h.n_scalar
    special_hermite_polynomial_h.x_scalar special_hermite_polynomial_he special_hermite_polynomial_he.n_scalar
    special_hermite_polynomial_he.x_scalar special_i0 special_i0e special_i1 special_i1e
    special_laguerre_polynomial_l special_laguerre_polynomial_l.n_scalar special_laguerre_polynomial_l.x_scalar
    special_legendre_polynomial_p special_legendre_polynomial_p.n_scalar special_legendre_polynomial_p.x_scalar
    special_log1p special_log_ndtr special_logit special_logsumexp special_modified_bessel_i0
    special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1 special_multigammaln
    special_ndtr special_ndtri special_polygamma special_psi special_round special_scaled_modified_bessel_k0
    special_scaled_modified_bessel_k1 special_shifted_chebyshev_polynomial_t
    special_shifted_chebyshev_polynomial_t.n_scalar special_shifted_chebyshev_polynomial_t.x_scalar
    special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_u.n_scalar
    special_shifted_chebyshev_polynomial_u.x_scalar special_shifted_chebyshev_polynomial_v
    special_shifted_chebyshev_polynomial_v.n_scalar special_shifted_chebyshev_polynomial_v.x_scalar
    special_shifted_chebyshev_polynomial_w special_shifted_chebyshev_polynomial_w.n_scalar
    special_shifted_chebyshev_polynomial_w.x_scalar special_sinc special_spherical_bessel_j0 special_xlog1py
    special_xlog1py.other_scalar special_xlog1py.self_scalar special_xlogy special_xlogy.other_scalar
    special_xlogy.self_scalar special_zeta special_zeta.other_scalar special_zeta.self_scalar split_copy.Tensor sqrt
    square squeeze_copy squeeze_copy.dim squeeze_copy.dims stack std.correction std.dim sub.Tensor subtract.Tensor
    sum.dim_IntList t_copy take take_along_dim tan tanh tensordot threshold transpose_copy.int tril triu
    true_divide.Tensor trunc unbind_copy.int unfold_copy unsqueeze_copy upsample_bicubic2d upsample_bilinear2d
    upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d var.correction
    var.dim vdot view_as_complex_copy view_as_real_copy view_copy view_copy.dtype vstack where.self
    xlogy.Scalar_Other xlogy.Scalar_Self xlogy.Tensor zeros
    """.split()  # noqa: SIM905
)
SEVERAL = frozenset(
    """
    _native_batch_norm_legit _native_batch_norm_legit.no_stats adaptive_max_pool2d adaptive_max_pool3d aminmax cummax
    cummin fractional_max_pool2d fractional_max_pool3d frexp.Tensor geqrf histogram.bin_ct histogram.bins_tensor
    kthvalue linalg_cholesky_ex linalg_eig linalg_eigh linalg_inv_ex linalg_ldl_factor linalg_ldl_factor_ex
    linalg_lstsq linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_qr linalg_slogdet linalg_solve_ex linalg_svd
    log_sigmoid_forward lu_unpack max.dim max_pool2d_with_indices max_pool3d_with_indices median.dim min.dim mode
    multilabel_margin_loss_forward nanmedian.dim native_batch_norm nll_loss2d_forward nll_loss_forward qr slogdet sort
    sort.stable split_copy.Tensor split_with_sizes_copy svd topk triangular_solve unbind_copy.int
    """.split()  # noqa: SIM905
)


def shown_out(qualified: str) -> str:
    """What the error text lists at the end of an overload: nothing for one without ``out=``."""
    return "Tensor out = None" if qualified in ONE else "tuple of Tensors out = None" if qualified in SEVERAL else ""


def checked(out: Any, qualified: str, returns: Sequence[str], place: int, numbers_fit: bool) -> Any:
    """``out`` as the op takes it: a tensor, or a tuple of tensors for an op with several results.

    Where numbers are taken for tensors one is taken here too, and a tensor made of it. ``place`` is how many arguments
    come before ``out``. Raises Mismatch or TypeError for anything else, and for another count than that of the results.
    """
    name = qualified.partition(".")[0]
    if qualified in SEVERAL:
        return _checked_tuple(out, name, returns, place)
    if isinstance(out, Tensor):
        return out
    if numbers_fit and isinstance(out, (bool, int, float, complex)):
        return from_array(np.asarray(out))
    raise Mismatch(f"{name}(): argument 'out' must be Tensor, not {type_name(out)}")


def _checked_tuple(out: Any, name: str, returns: Sequence[str], place: int) -> Any:
    if not isinstance(out, (tuple, list)):
        raise Mismatch(f"{name}(): argument 'out' must be tuple of Tensors, not {type_name(out)}")
    bad = next((index for index, item in enumerate(out) if not isinstance(item, Tensor)), None)
    if bad is not None:
        raise TypeError(f"expected Tensor as element {bad} in argument {place}, but got {type_name(out[bad])}")
    if returns != ("Tensor[]",) and len(out) != len(returns):
        raise TypeError(f"expected tuple of {len(returns)} elements but got {len(out)}")
    return out
