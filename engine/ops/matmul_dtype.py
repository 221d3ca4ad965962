"""Matrix products that give another dtype than their factors': the ``out_dtype`` overloads, which only GPUs have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stridescope.engine.device import CPU
from stridescope.engine.dispatch.one_device import one_device
from stridescope.engine.dispatch.op import Op, define
from stridescope.engine.dispatch.run import cast, resolved
from stridescope.engine.dtype import dtype, float32
from stridescope.engine.ops.matmul import bmm, mm
from stridescope.engine.ops.matmul_added import addmm, baddbmm
from stridescope.engine.tensor import Tensor, fresh

UNFITTING = "out_dtype must be the same as input dtype or fp32 for fp16/bf16 inputs"
UNFITTING_BATCHES = (
    "out_dtype only supported for torch.float32 output with float16/bfloat16 inputs or same as input dtypes"
)


def _refuse_cpu(name: str, factors: Sequence[Tensor]) -> None:
    if one_device(factors) is CPU:
        raise NotImplementedError(
            f"Could not run 'aten::{name}.dtype' with arguments from the 'CPU' backend: only GPUs multiply with an "
            "out_dtype. Convert the factors, or the result, with .to(dtype)."
        )


def _widened(tensor: Tensor, kind: dtype) -> Tensor:
    return tensor if tensor.dtype is kind else fresh(cast(resolved(tensor), kind), kind, tensor.device)


def _no_derivative(op: Op) -> dict[str, Any]:
    """The gradient that PyTorch does not have either: asked for, it raises RuntimeError."""

    def refuse(grads: Any) -> Any:
        raise RuntimeError(f"derivative for aten::{op.name} is not implemented")

    return {"node": "NotImplemented", "grads": {",".join(a.name for a in op.schema.arguments if a.is_tensor): refuse}}


def _with_dtype(op: Op, refusal: str) -> Callable[..., Tensor]:
    """The product computed in ``out_dtype``: raises RuntimeError for a pair of dtypes that no GPU kernel has."""
    run: Any = op.run

    def product(*args: Any) -> Tensor:
        factors = [a for a in args if isinstance(a, Tensor)]
        (kind,) = (a for a in args if isinstance(a, dtype))
        _refuse_cpu(op.name, factors)
        given = factors[-1].dtype
        half = given.itemsize == 2 and given.is_floating_point
        if kind is not given and not (half and kind is float32):
            raise RuntimeError(refusal)
        rest = [a for a in args if not isinstance(a, (Tensor, dtype))]
        return run(*(_widened(factor, kind) for factor in factors), *rest)  # type: ignore[no-any-return]

    return product


define(
    "mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor",
    doc="The product of two matrices, in another dtype.",
    run=_with_dtype(mm, UNFITTING),
    method=False,
    **_no_derivative(mm),
)
define(
    "bmm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor",
    doc="The products of two batches of matrices, in another dtype.",
    run=_with_dtype(bmm, UNFITTING_BATCHES),
    method=False,
    **_no_derivative(bmm),
)
define(
    "addmm.dtype(Tensor self, Tensor mat1, Tensor mat2, ScalarType out_dtype, *, Scalar beta=1, Scalar alpha=1) "
    "-> Tensor",
    doc="A matrix product in another dtype, times alpha, added to self times beta.",
    run=_with_dtype(addmm, UNFITTING),
    method=False,
    **_no_derivative(addmm),
)
define(
    "baddbmm.dtype(Tensor self, Tensor batch1, Tensor batch2, ScalarType out_dtype, *, Scalar beta=1, "
    "Scalar alpha=1) -> Tensor",
    doc="Batched matrix products in another dtype, times alpha, added to self times beta.",
    run=_with_dtype(baddbmm, UNFITTING_BATCHES),
    method=False,
    **_no_derivative(baddbmm),
)
