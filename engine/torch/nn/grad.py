"""``torch.nn.grad``: the two gradients of a convolution by themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stridescope.engine.ops.lookup import op_call
from stridescope.engine.torch.nn.modules._factory import numbers


def _gradients(dims: int, grad: Any, input: Any, weight: Any, options: tuple[Any, ...], groups: int) -> Any:
    """The gradients of input, weight and bias, all of them: they carry a graph of their own."""
    each = [numbers(value, dims) for value in options]
    return op_call("convolution_backward")(
        grad, input, weight, None, *each, False, (0,) * dims, groups, (True, True, True)
    )


def _pair(dims: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def conv_input(
        input_size: Any, weight: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Any:  # fmt: skip
        """The gradient of a convolution with respect to its input."""
        blank = grad_output.new_empty(1).expand(input_size)
        return _gradients(dims, grad_output, blank, weight, (stride, padding, dilation), groups)[0]

    def conv_weight(
        input: Any, weight_size: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Any:  # fmt: skip
        """The gradient of a convolution with respect to its weight."""
        blank = grad_output.new_empty(1).expand(weight_size)
        return _gradients(dims, grad_output, input, blank, (stride, padding, dilation), groups)[1]

    conv_input.__name__, conv_weight.__name__ = f"conv{dims}d_input", f"conv{dims}d_weight"
    return conv_input, conv_weight


conv1d_input, conv1d_weight = _pair(1)
conv2d_input, conv2d_weight = _pair(2)
conv3d_input, conv3d_weight = _pair(3)
