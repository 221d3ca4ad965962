"""Which ops autocast runs in which dtype, by device: PyTorch's lists."""

from __future__ import annotations

from typing import NamedTuple


class Policy(NamedTuple):
    """The lists of a device.

    Attributes:
        lower: run in the fast dtype.
        float32: run in float32.
        accumulating: get ``dtype=torch.float32`` when the caller names none.
        widest: run in the widest dtype among their arguments.
        refused: raise, because they can't be made safe.
    """

    lower: frozenset[str]
    float32: frozenset[str]
    accumulating: frozenset[str]
    widest: frozenset[str]
    refused: dict[str, str]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LOSSES = """
    cosine_embedding_loss nll_loss nll_loss2d nll_loss_nd hinge_embedding_loss poisson_nll_loss smooth_l1_loss l1_loss
    huber_loss margin_ranking_loss soft_margin_loss triplet_margin_loss multi_margin_loss kl_div
    multilabel_margin_loss mse_loss binary_cross_entropy_with_logits
"""
_PRODUCTS = """
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d bmm mm baddbmm addmm addbmm linear
    _convolution matmul linalg_vecdot scaled_dot_product_attention
"""

CPU = Policy(
    lower=_names(_PRODUCTS + " conv_tbc prelu mkldnn_rnn_layer _native_multi_head_attention"),
    float32=_names(
        _LOSSES
        + """
        avg_pool3d binary_cross_entropy grid_sampler polar prod quantile nanquantile stft cdist trace view_as_complex
        _cdist_forward
        cholesky cholesky_inverse cholesky_solve inverse lu_solve orgqr ormqr pinverse max_pool3d max_unpool2d
        max_unpool3d adaptive_avg_pool3d reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d
        replication_pad3d cross_entropy_loss ctc_loss multilabel_margin_loss_forward fft_fft fft_ifft fft_fft2 fft_ifft2
        fft_fftn fft_ifftn fft_rfft fft_irfft fft_rfft2 fft_irfft2 fft_rfftn fft_irfftn fft_hfft fft_ihfft linalg_cond
        linalg_matrix_rank linalg_solve linalg_cholesky linalg_svdvals linalg_eigvals linalg_eigvalsh linalg_inv
        linalg_householder_product linalg_tensorinv linalg_tensorsolve geqrf lu_unpack svd qr triangular_solve
        linalg_lstsq linalg_svd linalg_eig linalg_eigh linalg_qr
        """
    ),
    accumulating=frozenset(),
    widest=_names("stack cat index_copy"),
    refused={},
)

CUDA = Policy(
    lower=_names(
        _PRODUCTS
        + """
        convolution conv_tbc prelu addmv addr einsum mv chain_matmul linalg_multi_dot lstm_cell gru_cell rnn_tanh_cell
        rnn_relu_cell
        """
    ),
    float32=_names(
        _LOSSES
        + """
        acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow softplus layer_norm
        native_layer_norm group_norm frobenius_norm nuclear_norm cosine_similarity dist pdist cdist renorm logsumexp
        _cdist_forward
        upsample_nearest1d _upsample_nearest_exact1d upsample_nearest2d _upsample_nearest_exact2d upsample_nearest3d
        _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d
        upsample_bicubic2d _upsample_bicubic2d_aa norm
        """
    ),
    accumulating=_names("prod softmax log_softmax cumprod cumsum linalg_vector_norm linalg_matrix_norm sum"),
    widest=_names(
        "addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add stack cat"
    ),
    refused={
        "binary_cross_entropy": (
            "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
            "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
            "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\n"
            "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
            "safe to autocast."
        )
    },
)

POLICIES = {"cpu": CPU, "cuda": CUDA}
