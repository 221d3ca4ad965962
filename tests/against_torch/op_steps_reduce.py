"""The steps of the op programs that reduce, accumulate and multiply matrices."""

from __future__ import annotations

from typing import Any

from op_programs import COMPLEX, DTYPES, FLOATS, Inexact, OpProgram, step
from op_steps import applied, called, loose, whole

# ---- reductions ------------------------------------------------------------------------------------------------------

REDUCTIONS = ["sum", "amax", "amin", "any", "all", "count_nonzero", "nansum", "prod"]
FREE_REDUCTIONS = ["mean", "std", "var", "logsumexp", "nanmean", "norm"]
WITH_INDEX = ["max", "min", "argmax", "argmin", "median", "mode", "nanmedian", "cummax", "cummin", "aminmax"]


@step(6)
def reduced(p: OpProgram) -> Any:
    one, name = p.tensor(), p.pick(REDUCTIONS)
    free = name == "prod" or loose(p, one)
    free = free or (name in ("amax", "amin") and one.is_floating_point())  # which of +0 and -0 depends on vectors
    if p.chance(0.3):
        found = called(
            p, name, one, **(p.options(dtype=[p.dtype(DTYPES)]) if name in ("sum", "prod") and whole(p, one) else {})
        )
    else:
        keep = {} if name == "count_nonzero" else p.options(keepdim=[True, False])
        found = called(p, name, one, p.dim(one) if name == "prod" else p.dims(one), **keep)
    return Inexact(found) if free or whole(p, one) and p.kind(found) in (*FLOATS, *COMPLEX) else found


@step(4)
def free_reduced(p: OpProgram) -> Any:
    one, name = p.tensor(), p.pick(FREE_REDUCTIONS)
    options = p.options(correction=[0, 1, 2]) if name in ("std", "var") else {}
    if name != "logsumexp" and p.chance(0.3):
        return Inexact(called(p, name, one, **options))
    if name == "norm":
        return Inexact(one.norm(p.pick([1, 2, float("inf"), 0]), p.dim(one)))
    return Inexact(called(p, name, one, p.dims(one), **options, **p.options(keepdim=[True, False])))


@step(4)
def with_index(p: OpProgram) -> Any:
    """Extremes with where they are; of distinct values only where PyTorch leaves open which of equals it gives."""
    one, name = p.tensor(), p.pick(WITH_INDEX)
    if name in ("median", "nanmedian", "mode"):
        one = p.torch.arange(one.numel()).reshape(one.shape).to(one.dtype)
    if name not in ("cummax", "cummin", "mode") and p.chance(0.3):
        return called(p, name, one)
    options = {} if name in ("cummax", "cummin") else p.options(keepdim=[True, False])
    if name == "aminmax":
        return one.aminmax(dim=p.dim(one), **options)
    return called(p, name, one, p.dim(one), **options)


@step(3)
def cumulated(p: OpProgram) -> Any:
    one, name = p.tensor(), p.pick(["cumsum", "cumprod", "logcumsumexp", "diff", "trapezoid", "cumulative_trapezoid"])
    if name == "diff":
        found = p.torch.diff(one, **p.options(n=[1, 2, 0]), dim=p.dim(one))
    elif "trap" in name:
        one = one.real if one.is_complex() else one  # complex infinities are left to the C library
        found = getattr(p.torch, name)(one, dim=p.dim(one))
    else:
        found = called(p, name, one, p.dim(one))
    return found if whole(p, one) and whole(p, found) else Inexact(found)


# ---- products --------------------------------------------------------------------------------------------------------


@step(4)
def multiplied(p: OpProgram) -> Any:
    one = p.tensor()
    name = p.pick(["matmul", "mm", "bmm", "mv", "dot", "outer", "inner", "vdot", "@", "kron", "tensordot", "cross"])
    if one.is_complex():  # which parts of a product with infinities are NaN differs between BLAS's own kernels
        one = one.nan_to_num(0, 1, -1)
    other = p.tensor([p.kind(one)]) if p.chance(0.5) else one.mT if one.dim() > 1 and p.chance(0.8) else one
    other = other.nan_to_num(0, 1, -1) if other.is_complex() else other
    if name == "@":
        return Inexact(applied(p, one, "@", other))
    if name == "tensordot":
        return Inexact(p.torch.tensordot(one, other, dims=p.pick([0, 1])))
    return Inexact(getattr(p.torch, name)(one, other))


@step(1)
def multiplied_and_added(p: OpProgram) -> Any:
    one = p.tensor(most=2)
    name = p.pick(["addmm", "addmv", "addr", "baddbmm", "addbmm"])
    left, right = p.tensor(), p.tensor()
    return Inexact(getattr(p.torch, name)(one, left, right, **p.options(beta=[0, 2, 0.5], alpha=[1, 3])))


@step(2)
def summed_by_letters(p: OpProgram) -> Any:
    one = p.tensor()
    letters = "ijkl"[: one.dim()]
    forms = [f"{letters}->", f"{letters}->{letters[::-1]}", f"{letters}", "...->...", f"{letters},{letters}->{letters}"]
    form = p.pick(forms)
    return Inexact(p.torch.einsum(form, *([one, one] if "," in form else [one])))
