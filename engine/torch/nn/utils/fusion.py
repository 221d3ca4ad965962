"""Batch norms in evaluation mode folded into the layer before them."""

from __future__ import annotations

import copy
from typing import Any

from stridescope.engine import torch
from stridescope.engine.torch.nn.parameter import Parameter


def _scaled(weight: Any, bias: Any, channel: int, norm: tuple[Any, ...]) -> tuple[Parameter, Parameter]:
    """Weight and bias such that the layer does what the norm did after it; ``channel`` is the weight's output dim."""
    mean, variance, eps, scale, shift = norm
    bias = torch.zeros_like(mean) if bias is None else bias
    scale = torch.ones_like(mean) if scale is None else scale
    shift = torch.zeros_like(mean) if shift is None else shift
    factor = scale * torch.rsqrt(variance + eps)
    shape = [1] * weight.dim()
    shape[channel] = -1
    fused = (weight * factor.reshape(shape)).to(dtype=weight.dtype)
    moved = ((bias - mean) * factor + shift).to(dtype=bias.dtype)
    return Parameter(fused, weight.requires_grad), Parameter(moved, bias.requires_grad)


def fuse_conv_bn_weights(
    conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any, transpose: bool = False
) -> tuple[Parameter, Parameter]:
    """A convolution's weight and bias with a batch norm folded in."""
    return _scaled(conv_w, conv_b, 1 if transpose else 0, (bn_rm, bn_rv, bn_eps, bn_w, bn_b))


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Parameter, Parameter]:
    """A linear layer's weight and bias with a batch norm folded in."""
    return _scaled(linear_w, linear_b, 0, (bn_rm, bn_rv, bn_eps, bn_w, bn_b))


def _fused(layer: Any, bn: Any, channel: int) -> Any:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("the batch norm has no running statistics to fold in")
    made = copy.deepcopy(layer)
    norm = (bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    made.weight, made.bias = _scaled(made.weight, made.bias, channel, norm)
    return made


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of the convolution that does what both did; raises AssertionError while either is training."""
    return _fused(conv, bn, 1 if transpose else 0)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of the linear layer that does what both did; raises AssertionError while either is training."""
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    return _fused(linear, bn, 0)
