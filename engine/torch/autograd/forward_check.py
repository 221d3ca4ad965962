"""Forward-mode derivatives against finite differences, for ``gradcheck(check_forward_ad=True)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stridescope.engine.autograd.blank import zeros_like
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.autograd import forward_ad
from stridescope.engine.torch.autograd.gradcheck import GradcheckError, Tolerances, mismatch, numerical_jacobian


def check_forward(func: Callable[..., Any], inputs: Sequence[Any], limits: Tolerances) -> None:
    """Raise GradcheckError on the first Jacobian that forward mode gets wrong."""
    for column, position in enumerate(i for i, one in enumerate(inputs) if _real_tracked(one)):
        numerical = numerical_jacobian(func, inputs, position, limits.eps)
        for output, (a, n) in enumerate(zip(_pushed(func, inputs, position), numerical, strict=True)):
            if not np.allclose(a, n, rtol=limits.rtol, atol=limits.atol):
                raise GradcheckError(mismatch(a, n, output, column, "computed with forward mode "))


def _real_tracked(one: Any) -> bool:
    return isinstance(one, Tensor) and one._requires_grad and not one.dtype.is_complex


def _pushed(func: Callable[..., Any], inputs: Sequence[Any], position: int) -> list[Array]:
    rows = []
    for number in range(inputs[position].numel()):
        with forward_ad.dual_level():
            tangent = zeros_like(inputs[position]).contiguous()
            tangent._array.reshape(-1)[number] = 1
            args = list(inputs)
            args[position] = forward_ad.make_dual(inputs[position].detach(), tangent)
            outputs = func(*args)
            rows.append([_tangent(out) for out in (outputs if isinstance(outputs, tuple) else (outputs,))])
    return [np.stack(column) for column in zip(*rows, strict=True)]


def _tangent(output: Tensor) -> Array:
    tangent = forward_ad.unpack_dual(output).tangent
    if tangent is None:
        return np.zeros(output.numel(), output.dtype.np)
    return tangent.detach().clone().reshape(-1)._array.copy()  # type: ignore[no-any-return]
