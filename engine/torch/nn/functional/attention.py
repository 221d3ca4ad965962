"""Attention: the fused product, and multi-head attention with its projections."""

from __future__ import annotations

import math
from typing import Any

from stridescope.engine.dtype import bool_, dtype
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn.functional._native import NATIVE, TORCH
from stridescope.engine.warn import warn

scaled_dot_product_attention = NATIVE["scaled_dot_product_attention"]


def canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: dtype | None,
    other_name: str,
    target_type: dtype,
    check_other: bool = True,
) -> Any:
    """A mask as numbers to be added: minus infinity where a bool mask hides."""
    if mask is None:
        return None
    if mask.dtype is not bool_ and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype is not other_type:
        warn(f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.")
    if mask.is_floating_point():
        return mask
    return TORCH["zeros_like"](mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _check_shapes(query: Tensor, key: Tensor, value: Tensor, padding: Any, mask: Any, num_heads: int) -> bool:
    """Whether there is a batch dim; raises AssertionError for tensors that do not go together."""
    dims = query.dim()
    if dims not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {dims}-D query tensor")
    batched = dims == 3
    start = f"For {'batched (3-D)' if batched else 'unbatched (2-D)'} `query`, expected"
    if key.dim() != dims or value.dim() != dims:
        raise AssertionError(
            f"{start} `key` and `value` to be {dims}-D but found {key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if padding is not None and padding.dim() != dims - 1:
        raise AssertionError(
            f"{start} `key_padding_mask` to be `None` or {dims - 1}-D but found {padding.dim()}-D tensor instead"
        )
    if mask is not None:
        if mask.dim() not in (2, 3):
            raise AssertionError(
                f"{start} `attn_mask` to be `None`, 2-D or 3-D but found {mask.dim()}-D tensor instead"
            )
        wanted = (num_heads, query.shape[0], key.shape[0])
        if not batched and mask.dim() == 3 and tuple(mask.shape) != wanted:
            raise AssertionError(f"Expected `attn_mask` shape to be {wanted} but got {mask.shape}")
    return batched  # type: ignore[no-any-return]


def _stacked(projected: Tensor, count: int, size: int) -> Any:
    return projected.unflatten(-1, (count, size)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()


def _in_projection_packed(q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None) -> tuple[Any, Any, Any]:
    """The projections of queries, keys and values by one weight; equal inputs are projected together."""
    linear, size = NATIVE["linear"], q.size(-1)
    if k is v and q is k:
        parts = _stacked(linear(q, w, b), 3, size)
        return parts[0], parts[1], parts[2]
    if k is v:
        w_q, w_kv = w.split([size, size * 2])
        b_q, b_kv = (None, None) if b is None else b.split([size, size * 2])
        first = linear(q, w_q, b_q)
        parts = _stacked(linear(k, w_kv, b_kv), 2, size)
        return first, parts[0], parts[1]
    weights = w.chunk(3)
    biases = (None, None, None) if b is None else b.chunk(3)
    found = [linear(x, weight, bias) for x, weight, bias in zip((q, k, v), weights, biases, strict=True)]
    return found[0], found[1], found[2]


def _checked_mask(mask: Any, batch: int, num_heads: int, target: int, source: int) -> Any:
    if mask is None:
        return None
    if mask.dim() == 2:
        if tuple(mask.shape) != (target, source):
            raise RuntimeError(f"The shape of the 2D attn_mask is {mask.shape}, but should be {(target, source)}.")
        return mask.unsqueeze(0)
    if mask.dim() == 3:
        wanted = (batch * num_heads, target, source)
        if tuple(mask.shape) != wanted:
            raise RuntimeError(f"The shape of the 3D attn_mask is {mask.shape}, but should be {wanted}.")
        return mask
    raise RuntimeError(f"attn_mask's dimension {mask.dim()} is not supported")


def _masks(query: Tensor, padding: Any, mask: Any, is_causal: bool, need_weights: bool) -> tuple[Any, Any, bool]:
    padding = canonical_mask(
        padding, "key_padding_mask", None if mask is None else mask.dtype, "attn_mask", query.dtype
    )
    if is_causal and mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and padding is None and not need_weights:
        return padding, None, True
    mask = canonical_mask(mask, "attn_mask", None, "", query.dtype, False)
    return padding, mask, is_causal and padding is None


def _widened(tensors: list[Any], more: list[Any], dim: int, mask: Any, padding: Any) -> tuple[Any, ...]:
    """Keys and values with something appended, and masks that show it."""
    k, v = (TORCH["cat"]([t, extra], dim=dim) for t, extra in zip(tensors, more, strict=True))
    pad = NATIVE["pad"]
    return k, v, None if mask is None else pad(mask, (0, 1)), None if padding is None else pad(padding, (0, 1))


def _heads(tensor: Any, static: Any, count: int, size: int, name: str) -> Any:
    if static is None:
        return tensor.view(tensor.shape[0], count, size).transpose(0, 1)
    for place, wanted in ((0, count), (2, size)):
        if static.size(place) != wanted:
            raise AssertionError(f"expecting {name}.size({place}) of {wanted}, but got {static.size(place)}")
    return static


def _merged(padding: Any, mask: Any, batch: int, num_heads: int, source: int) -> Any:
    if padding is None:
        return mask
    shaped = padding.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1).reshape(batch * num_heads, 1, source)
    return shaped if mask is None else mask + shaped


def _weighted(q: Any, k: Any, v: Any, mask: Any, dropout_p: float) -> tuple[Any, Any]:
    """Attention whose weights are kept."""
    scaled = q * math.sqrt(1.0 / float(q.shape[-1]))
    keys = k.transpose(-2, -1)
    weights = TORCH["bmm"](scaled, keys) if mask is None else TORCH["baddbmm"](mask, scaled, keys)
    weights = weights.softmax(-1)
    if dropout_p > 0.0:
        weights = TORCH["dropout"](weights, dropout_p, True)
    return TORCH["bmm"](weights, v), weights


def _projections(
    query: Tensor, key: Tensor, value: Tensor, weight: Any, bias: Any, separate: tuple[Any, Any, Any] | None
) -> tuple[Any, Any, Any]:
    if separate is None:
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        if weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        return _in_projection_packed(query, key, value, weight, bias)
    if key.shape[:2] != value.shape[:2]:
        raise AssertionError(f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}")
    for name, part in zip("qkv", separate, strict=True):
        if part is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
    biases = (None, None, None) if bias is None else bias.chunk(3)
    parts = zip((query, key, value), separate, biases, strict=True)
    q, k, v = (NATIVE["linear"](x, w, b) for x, w, b in parts)
    return q, k, v


def _attended(q: Any, k: Any, v: Any, mask: Any, dropout_p: float, is_causal: bool, shape: tuple[int, int, int]) -> Any:
    batch, num_heads, target = shape
    if mask is not None:
        single = mask.size(0) == 1 and mask.dim() == 3
        mask = mask.unsqueeze(0) if single else mask.view(batch, num_heads, -1, k.size(1))
    split = [t.view(batch, num_heads, t.size(1), t.size(2)) for t in (q, k, v)]
    out = scaled_dot_product_attention(*split, mask, dropout_p, is_causal)
    return out.permute(2, 0, 1, 3).contiguous().view(batch * target, num_heads * q.size(2))


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention of several heads, with the projections of inputs and output."""
    batched = _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = (t.unsqueeze(1) for t in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    target, batch, embed = query.shape
    padding, mask, is_causal = _masks(query, key_padding_mask, attn_mask, is_causal, need_weights)
    if embed != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed}")
    size = embed // num_heads
    if size * num_heads != embed:
        raise AssertionError(f"embed_dim {embed} not divisible by num_heads {num_heads}")
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    q, k, v = _projections(query, key, value, in_proj_weight, in_proj_bias, separate)
    mask = _checked_mask(mask, batch, num_heads, target, key.shape[0])
    if bias_k is not None and bias_v is not None:
        more = [b.repeat(1, batch, 1) for b in (bias_k, bias_v)]
        k, v, mask, padding = _widened([k, v], more, 0, mask, padding)
    count = batch * num_heads
    q = q.view(target, count, size).transpose(0, 1)
    k, v = _heads(k, static_k, count, size, "static_k"), _heads(v, static_v, count, size, "static_v")
    if add_zero_attn:
        zeros = [TORCH["zeros"]((count, 1, size), dtype=k.dtype, device=k.device)] * 2
        k, v, mask, padding = _widened([k, v], zeros, 1, mask, padding)
    mask = _merged(padding, mask, batch, num_heads, k.size(1))
    dropout_p = dropout_p if training else 0.0
    weights: Any = None
    if need_weights:
        out, weights = _weighted(q, k, v, mask, dropout_p)
        out = out.transpose(0, 1).contiguous().view(target * batch, embed)
    else:
        out = _attended(q, k, v, mask, dropout_p, is_causal, (batch, num_heads, target))
    out = NATIVE["linear"](out, out_proj_weight, out_proj_bias)
    out = out.view(target, batch, out.size(1))
    if weights is not None:
        weights = weights.view(batch, num_heads, target, k.size(1))
        weights = weights.mean(dim=1) if average_attn_weights else weights
        weights = weights if batched else weights.squeeze(0)
    return out if batched else out.squeeze(1), weights


_canonical_mask = canonical_mask
