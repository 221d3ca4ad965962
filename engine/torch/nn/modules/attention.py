"""Multi-head attention."""

from __future__ import annotations

from typing import Any

from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn import init
from stridescope.engine.torch.nn.functional.attention import canonical_mask
from stridescope.engine.torch.nn.modules._factory import named_as, parameter
from stridescope.engine.torch.nn.modules.linear import NonDynamicallyQuantizableLinear
from stridescope.engine.torch.nn.modules.module import Module


def no_gradients(*tensors: Any) -> bool:
    """Whether nothing here wants a gradient: PyTorch's CPU then takes a fused path with contiguous results."""
    return not grad_mode.enabled or not any(t is not None and t.requires_grad for t in tensors)


class MultiheadAttention(Module):
    """Attention of several heads, with projections of inputs and output."""

    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads, self.dropout, self.batch_first = num_heads, dropout, batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self._make_weights(bias, device, dtype)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.bias_k = parameter((1, 1, embed_dim), device, dtype) if add_bias_kv else None
        self.bias_v = parameter((1, 1, embed_dim), device, dtype) if add_bias_kv else None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _make_weights(self, bias: bool, device: Any, dtype: Any) -> None:
        size, same = self.embed_dim, self._qkv_same_embed_dim
        if not same:
            for name, taken in (("q", size), ("k", self.kdim), ("v", self.vdim)):
                self.register_parameter(f"{name}_proj_weight", parameter((size, taken), device, dtype))
            self.register_parameter("in_proj_weight", None)
        else:
            self.in_proj_weight = parameter((3 * size, size), device, dtype)
            for name in "qkv":
                self.register_parameter(f"{name}_proj_weight", None)
        self.register_parameter("in_proj_bias", parameter((3 * size,), device, dtype) if bias else None)

    def _reset_parameters(self) -> None:
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            for weight in (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def _fused(self, query: Tensor, key: Tensor, value: Tensor) -> bool:
        plain = query.dim() == 3 and query is key and key is value and self.batch_first and not self.training
        own = self._qkv_same_embed_dim and self.bias_k is None and not self.add_zero_attn and self.num_heads % 2 == 0
        weights = (self.in_proj_weight, self.in_proj_bias, self.out_proj.weight, self.out_proj.bias)
        return plain and own and self.in_proj_bias is not None and no_gradients(query, *weights)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The attended values, and with ``need_weights`` the weights."""
        fused = self._fused(query, key, value)
        other = None if attn_mask is None else attn_mask.dtype
        key_padding_mask = canonical_mask(key_padding_mask, "key_padding_mask", other, "attn_mask", query.dtype)
        attn_mask = canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
        turned = self.batch_first and query.dim() == 3
        if turned:
            query, key, value = _turned(query, key, value)
        separate = {} if self._qkv_same_embed_dim else {
            "use_separate_proj_weight": True, "q_proj_weight": self.q_proj_weight,
            "k_proj_weight": self.k_proj_weight, "v_proj_weight": self.v_proj_weight,
        }  # fmt: skip
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
            **separate,
        )
        output = output.transpose(1, 0) if turned else output
        return output.contiguous() if fused else output, weights


def _turned(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Time first; inputs that are one tensor stay one."""
    q = query.transpose(1, 0)
    k = q if key is query else key.transpose(1, 0)
    return q, k, k if value is key else value.transpose(1, 0)


named_as("activation", globals())
