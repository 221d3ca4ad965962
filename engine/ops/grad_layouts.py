"""Gradients laid out as PyTorch's backward kernels lay them out, where the ops of a formula would do it otherwise."""

from __future__ import annotations

from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.dispatch.result_strides import output_strides
from stridescope.engine.dispatch.run import laid_out
from stridescope.engine.layout import dense_strides_like
from stridescope.engine.tensor import Tensor, fresh


def by_grad(result: Tensor, grad: Tensor, self: Tensor) -> Tensor:
    """``result`` with the layout of a kernel of the incoming gradient and the input, in this order.

    Where the gradient shall be differentiated again it stays as it is: it has history.
    """
    first, second = grad._array, self._array
    if grad_mode.enabled or (first.flags.c_contiguous and second.flags.c_contiguous):
        return result
    return _relaid(result, output_strides(result._array.shape, [first, second]))


def like_input(result: Tensor, self: Tensor) -> Tensor:
    """``result`` with the layout of a new tensor like the input; where it has history, as it is."""
    if grad_mode.enabled or (result._array.flags.c_contiguous and self._array.flags.c_contiguous):
        return result
    return _relaid(result, dense_strides_like(result._array.shape, self.strides))


def _relaid(result: Tensor, strides: tuple[int, ...]) -> Tensor:
    return result if strides == result.strides else fresh(laid_out(result._array, strides), result.dtype, result.device)


def row_major(result: Tensor) -> Tensor:
    """``result`` laid out row by row, as the gradients of losses are, whatever the layouts of what they come from."""
    return result if result._array.flags.c_contiguous else result.contiguous()
