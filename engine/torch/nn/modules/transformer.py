"""Transformer layers and stacks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar

from stridescope.engine.ops import FUNCTIONS
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._in_each import in_each
from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn import init
from stridescope.engine.torch.nn.functional.attention import canonical_mask
from stridescope.engine.torch.nn.modules._factory import named_as
from stridescope.engine.torch.nn.modules.activation import GELU, ReLU
from stridescope.engine.torch.nn.modules.attention import MultiheadAttention, no_gradients
from stridescope.engine.torch.nn.modules.container import ModuleList
from stridescope.engine.torch.nn.modules.dropout import Dropout
from stridescope.engine.torch.nn.modules.linear import Linear
from stridescope.engine.torch.nn.modules.module import Module
from stridescope.engine.torch.nn.modules.normalization import LayerNorm
from stridescope.engine.warn import internal, warn, warn_once

PROTOTYPE = (
    "The PyTorch API of nested tensors is in prototype stage and will change in the near future. We recommend "
    "specifying layout=torch.jagged when constructing a nested tensor, as this layout receives active development, "
    "has better operator coverage, and works with torch.compile."
)
Activation = str | Callable[[Tensor], Tensor]


def square_mask(size: int, device: Any = None, dtype: Any = None) -> Any:
    """Minus infinity above the diagonal: no position sees a later one."""
    full = FUNCTIONS["torch"]["full"]((size, size), float("-inf"), dtype=dtype, device=device)
    return FUNCTIONS["torch"]["triu"](full, diagonal=1)


def _get_clones(module: Module, N: int) -> ModuleList:
    """A list of copies."""
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


def _activation(activation: Activation) -> Any:
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return F.relu if activation == "relu" else F.gelu


def _is_causal(mask: Tensor | None, is_causal: bool | None, size: int | None) -> bool:
    """Whether the mask is the causal one, when nobody says so."""
    if is_causal is not None:
        return is_causal
    if mask is None:
        return False
    wanted = square_mask(size if size is not None else mask.size(-2), device=mask.device, dtype=mask.dtype)
    return mask.size() == wanted.size() and bool((mask == wanted).all())


def _length(src: Tensor, batch_first: bool) -> int | None:
    if src.dim() == 2:
        return src.size(0)  # type: ignore[no-any-return]
    return src.size(1 if batch_first else 0)  # type: ignore[no-any-return]


def _why_not_nested(layer: Module) -> str:
    """Return why PyTorch makes no nested tensors for a stack of such layers, or ""."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention = layer.self_attn
    reasons = {
        "encoder_layer.norm_first was True": layer.norm_first,
        "encoder_layer.self_attn.batch_first was not True(use batch_first for better inference performance)": (
            not attention.batch_first
        ),
        "encoder_layer.self_attn._qkv_same_embed_dim was not True": not attention._qkv_same_embed_dim,
        "encoder_layer.self_attn was passed bias=False": attention.in_proj_bias is None,
        "encoder_layer.activation_relu_or_gelu was not True": not layer.activation_relu_or_gelu,
        "encoder_layer.norm1.eps was not equal to encoder_layer.norm2.eps": layer.norm1.eps != layer.norm2.eps,
        "encoder_layer.self_attn.num_heads is odd": attention.num_heads % 2,
    }
    return next((text for text, true in reasons.items() if true), "")


class _Layer(Module):
    """What encoder and decoder layers share: attentions, two linear steps, and norms after each of them."""

    _attentions: ClassVar[tuple[str, ...]]

    @in_each
    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        place = {"bias": bias, "device": device, "dtype": dtype}
        for name in self._attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, **place))
        self.linear1 = Linear(d_model, dim_feedforward, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **place)
        parts = range(1, len(self._attentions) + 2)
        for part in parts:
            setattr(self, f"norm{part}", LayerNorm(d_model, eps=layer_norm_eps, **place))
        for part in parts:
            setattr(self, f"dropout{part}", Dropout(dropout))
        self.norm_first = norm_first
        self.activation = _activation(activation)
        self._know_activation()

    def _know_activation(self) -> None:
        """Encoder layers note whether theirs is one that PyTorch fuses."""

    def _sa_block(self, x: Tensor, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Tensor:
        found = self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, need_weights=False, is_causal=is_causal
        )
        return self.dropout1(found[0])  # type: ignore[no-any-return]

    def _stepped(self, x: Tensor, last: Any) -> Tensor:
        return last(self.linear2(self.dropout(self.activation(self.linear1(x)))))  # type: ignore[no-any-return]


class TransformerEncoderLayer(_Layer):
    """Self-attention and two linear steps."""

    _attentions = ("self_attn",)

    def _know_activation(self) -> None:
        gelu = self.activation is F.gelu or isinstance(self.activation, GELU)
        self.activation_relu_or_gelu = (
            2 if gelu else int(self.activation is F.relu or isinstance(self.activation, ReLU))
        )

    def _ff_block(self, x: Tensor) -> Tensor:
        return self._stepped(x, self.dropout2)

    def _fused(self, src: Tensor) -> bool:
        plain = src.dim() == 3 and not self.training and self.self_attn.batch_first
        own = self.self_attn.in_proj_bias is not None and self.self_attn.num_heads % 2 == 0
        return plain and own and no_gradients(src, *self.parameters())

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Run the layer."""
        other = None if src_mask is None else src_mask.dtype
        padding = canonical_mask(src_key_padding_mask, "src_key_padding_mask", other, "src_mask", src.dtype)
        mask = canonical_mask(src_mask, "src_mask", None, "", src.dtype, False)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), mask, padding, is_causal)
            x = x + self._ff_block(self.norm2(x))
        else:
            x = self.norm1(x + self._sa_block(x, mask, padding, is_causal))
            x = self.norm2(x + self._ff_block(x))
        return x.contiguous() if self._fused(src) else x  # type: ignore[no-any-return]


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to an encoder's output, and two linear steps."""

    _attentions = ("self_attn", "multihead_attn")

    def _mha_block(self, x: Tensor, mem: Tensor, attn_mask: Any, key_padding_mask: Any, is_causal: bool) -> Tensor:
        found = self.multihead_attn(
            x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False
        )
        return self.dropout2(found[0])  # type: ignore[no-any-return]

    def _ff_block(self, x: Tensor) -> Tensor:
        return self._stepped(x, self.dropout3)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Run the layer."""
        x = tgt
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), memory, *other)
            return x + self._ff_block(self.norm3(x))  # type: ignore[no-any-return]
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, memory, *other))
        return self.norm3(x + self._ff_block(x))  # type: ignore[no-any-return]


class TransformerEncoder(Module):
    """A stack of encoder layers."""

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm
        self.enable_nested_tensor = enable_nested_tensor
        reason = _why_not_nested(encoder_layer) if enable_nested_tensor else ""
        if reason:
            warn(f"enable_nested_tensor is True, but self.use_nested_tensor is False because {reason}")
        self.use_nested_tensor = enable_nested_tensor and not reason
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Run the layers one after another."""
        other = None if mask is None else mask.dtype
        padding = canonical_mask(src_key_padding_mask, "src_key_padding_mask", other, "mask", src.dtype)
        mask = canonical_mask(mask, "mask", None, "", src.dtype, False)
        batch_first = self.layers[0].self_attn.batch_first if len(self.layers) else False
        causal = _is_causal(mask, is_causal, _length(src, batch_first))
        dropped = self._dropped(src, mask, padding)
        if dropped is not None:
            padding = canonical_mask(dropped, "src_key_padding_mask", None, "", src.dtype)
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        if dropped is not None:
            output = output.masked_fill(dropped.unsqueeze(-1), 0.0)
        return output if self.norm is None else self.norm(output)

    def _dropped(self, src: Tensor, mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
        """Return the positions that a nested tensor leaves out, or None where PyTorch would not make one.

        Without training and gradients PyTorch packs the unpadded positions of each row, so the others come out as 0.
        With ``mask_check`` that is done only if each row's padding is at its end; else as many are kept as a row has.
        """
        fast = self.use_nested_tensor and not self.training and src.dim() == 3 and mask is None
        if padding is None or not fast or not no_gradients(src, *self.parameters()):
            return None
        kept = padding.logical_not()
        positions = FUNCTIONS["torch"]["arange"](kept.size(1), device=kept.device)
        first = positions < kept.sum(1, keepdim=True)
        if self.mask_check and not bool((first == kept).all()):
            return None
        warn_once(internal(PROTOTYPE, "aten/src/ATen/NestedTensorImpl.cpp:177"))
        return first.logical_not()  # type: ignore[no-any-return]


class TransformerDecoder(Module):
    """A stack of decoder layers."""

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Run the layers one after another."""
        causal = _is_causal(tgt_mask, tgt_is_causal, _length(tgt, self.layers[0].self_attn.batch_first))
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """An encoder and a decoder."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        shared = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        parts = (
            ("encoder", custom_encoder, TransformerEncoderLayer, TransformerEncoder, num_encoder_layers),
            ("decoder", custom_decoder, TransformerDecoderLayer, TransformerDecoder, num_decoder_layers),
        )
        for name, custom, layer, stack, count in parts:
            if custom is not None:
                setattr(self, name, custom)
                continue
            one = layer(*shared, device, dtype)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)
            setattr(self, name, stack(one, count, norm))  # type: ignore[arg-type]
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Encode the source, and decode with the target."""
        if src.dim() == 3 and src.size(0 if self.batch_first else 1) != tgt.size(0 if self.batch_first else 1):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(  # type: ignore[no-any-return]
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """Minus infinity above the diagonal."""
        return square_mask(sz, device, dtype)  # type: ignore[no-any-return]

    def _reset_parameters(self) -> None:
        for weight in self.parameters():
            if weight.dim() > 1:
                init.xavier_uniform_(weight)


named_as("transformer", globals())
