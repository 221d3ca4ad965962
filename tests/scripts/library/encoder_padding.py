"""Which encoders pack padded rows, what they warn of, and the zeros that packing leaves."""

import warnings

import torch
import torch.nn as nn


def told(make):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = make()
    return made, [str(warning.message) for warning in caught]


def encoder(change=None, layers=1, options=None, heads=2, **settings):
    layer = nn.TransformerEncoderLayer(8, heads, 16, **settings)
    if change:
        change(layer)
    made, texts = told(lambda: nn.TransformerEncoder(layer, layers, **(options or {})))
    print(texts, made.enable_nested_tensor, made.use_nested_tensor, made.mask_check, layer.activation_relu_or_gelu)
    return made


def uneven(layer):
    layer.norm1.eps = 1e-3


def other_keys(layer):
    layer.self_attn = nn.MultiheadAttention(8, 2, kdim=4, vdim=4, batch_first=True)


class Own(nn.TransformerEncoderLayer):
    pass


torch.manual_seed(0)
encoder()
for settings in (dict(), dict(norm_first=True), dict(heads=1), dict(activation=nn.functional.silu), dict(bias=False)):
    encoder(batch_first=True, **settings)
encoder(options=dict(enable_nested_tensor=False))
encoder(batch_first=True, activation=nn.GELU(), options=dict(mask_check=False))
encoder(uneven, batch_first=True)
encoder(other_keys, batch_first=True)
print(told(lambda: nn.TransformerEncoder(Own(8, 2, 16, batch_first=True), 1))[1])
print(told(lambda: nn.TransformerEncoder(nn.Linear(2, 2), 1))[1])
print(told(lambda: nn.Transformer(8, 2, 1, 1, 8))[1])

stack = encoder(layers=2, batch_first=True, dropout=0.0).eval()
x = torch.randn(2, 4, 8)
ends = torch.tensor([[False, False, True, True], [False, False, False, True]])
inside = torch.tensor([[True, False, True, True], [False, False, False, True]])
print(stack(x, src_key_padding_mask=ends)[:, :, :2])
with torch.no_grad():
    packed, texts = told(lambda: stack(x, src_key_padding_mask=ends))
    print(packed[:, :, :2], packed.stride(), texts)
    print(told(lambda: stack(x, src_key_padding_mask=ends))[1])
    print(stack(x, src_key_padding_mask=inside)[:, :, :2])
    print(stack(x, src_key_padding_mask=torch.zeros(2, 4).masked_fill(ends, float("-inf")))[:, :, :2])
    print(stack(x, mask=torch.zeros(4, 4), src_key_padding_mask=ends.float() * -1e9)[:, :, :2])
    print(stack.layers[0](x, src_key_padding_mask=ends)[:, :, :2])
    stack.norm = nn.LayerNorm(8)
    nn.init.constant_(stack.norm.bias, 0.5)
    print(stack(x, src_key_padding_mask=ends)[:, :, :2])
    stack.mask_check = False
    print(stack(x, src_key_padding_mask=inside)[:, :, :2])
    print(stack.train()(x, src_key_padding_mask=ends)[:, :, :2])
print(stack.eval().requires_grad_(False)(x, src_key_padding_mask=ends)[0, 3])
