"""Convolution weights in another memory format."""

from __future__ import annotations

from typing import Any

from stridescope.engine.torch.nn.modules import conv


def _converted(module: Any, memory_format: Any, kinds: Any) -> Any:
    for each in module.modules():
        if isinstance(each, kinds):
            each.weight.data = each.weight.detach().clone().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Lay out the weights of all 2-d convolutions below a module in a memory format."""
    return _converted(module, memory_format, (conv.Conv2d, conv.ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Lay out the weights of all 3-d convolutions below a module in a memory format."""
    return _converted(module, memory_format, (conv.Conv3d, conv.ConvTranspose3d))
