"""The steps of the op programs about memory: formats, masks of several dims, writes through bits, shared writes."""

from __future__ import annotations

from typing import Any

from op_programs import COMMON, COMPLEX, FLOATS, Inexact, OpProgram, made_as, overlaps, step
from op_steps import whole

# ---- memory formats --------------------------------------------------------------------------------------------------

IMAGES = [(2, 3, 2, 2), (1, 3, 2, 2), (2, 1, 2, 2), (2, 3, 1, 1), (2, 2, 1, 3), (0, 2, 2, 2), (1, 1, 1, 1)]
VOLUMES = [(1, 2, 2, 1, 3), (2, 2, 1, 2, 1)]


def formatted(p: OpProgram) -> Any:
    """An image or a volume in some order of dims."""
    volume = p.chance(0.2)
    one = made_as(p, p.pick(VOLUMES if volume else IMAGES), p.pick(COMMON))
    if p.chance(0.7):
        one = one.contiguous(memory_format=p.torch.channels_last_3d if volume else p.torch.channels_last)
    return one[:, p.pick([0, 1]) :] if p.chance(0.2) else one


@step(2)
def in_format(p: OpProgram) -> Any:
    """The strides of what is made of images: kept, asked for or lost."""
    one, torch = formatted(p), p.torch
    last = torch.channels_last if one.dim() == 4 else torch.channels_last_3d
    wanted = p.random.choice([last, torch.contiguous_format, torch.preserve_format])
    name = p.pick(["clone", "to", "empty_like", "asked", "pointwise", "with_other", "summed", "cat", "contiguous",
                   "cast", "padded", "where", "moved"])  # fmt: skip
    p.words.append(str(wanted))
    if name in ("clone", "to", "empty_like"):
        made = one.to(p.dtype(FLOATS), memory_format=wanted) if name == "to" else one.clone(memory_format=wanted)
        return list(torch.empty_like(one, memory_format=wanted).stride()) if name == "empty_like" else made
    if name == "asked":
        return [one.is_contiguous(), one.is_contiguous(memory_format=last), list(one.stride())]
    if name == "pointwise":
        return Inexact(getattr(one, p.pick(["abs", "exp", "neg", "isnan", "square", "clone", "logical_not"]))())
    if name == "with_other":
        other = p.random.choice([formatted, lambda q: q.tensor(), lambda q: one[:, :1], lambda q: one[0]])(p)
        return Inexact(torch.mul(one, other))
    if name == "summed":
        return Inexact(one.sum(p.dims(one), **p.options(keepdim=[True, False])))
    if name == "cat":
        return torch.cat([one, one], p.dim(one))
    if name == "contiguous":
        return one.contiguous(memory_format=last)
    if name == "cast":
        return one.to(p.dtype(["float64", "bool", "complex64"]))
    if name == "padded":
        return torch.nn.functional.pad(one, p.pick([(1, 0), (0, 1, 1, 0)]))
    if name == "where":
        return torch.where(one == 0, one, p.pick([1, 2.5]))
    moves = [lambda: one.flip(1), lambda: one.roll(1, 2), lambda: one.permute(0, 2, 3, 1), lambda: one[1:],
             lambda: one.unsqueeze(0), lambda: one.flatten(2), lambda: one.repeat(1, 2, 1, 1)]  # fmt: skip
    return p.random.choice(moves)()


# ---- masks of several dims -------------------------------------------------------------------------------------------


def masked_key(p: OpProgram, one: Any) -> tuple[Any, ...]:
    """A key with a mask of two dims at some place, among keys that make views and gather."""
    start = p.random.randrange(one.dim() - 1)
    shape = one.shape[start : start + 2]
    mask = p.torch.tensor([p.chance(0.5) for _ in range(shape.numel())], dtype=p.torch.bool).reshape(shape)
    keys: list[Any] = []
    for size in one.shape[:start]:
        keys.append(key_part(p, size))
    keys.append(mask.t().contiguous().t() if p.chance(0.3) else mask)
    for size in one.shape[start + 2 :]:
        if p.chance(0.7):
            keys.append(key_part(p, size))
    p.words.append(repr([k.tolist() if isinstance(k, p.torch.Tensor) else k for k in keys]))
    return tuple(keys)


def key_part(p: OpProgram, size: int) -> Any:
    if not size:
        return slice(None)
    number = p.random.randrange(-size, size)
    return p.random.choice([number, slice(None), slice(number, None), [number], p.torch.tensor([number]), [number] * 2])


@step(2)
def indexed_by_mask(p: OpProgram) -> Any:
    one = p.tensor()
    if one.dim() < 2:
        one = one.reshape(1, 1, -1)
    return one[masked_key(p, one)]


@step(1)
def assigned_by_mask(p: OpProgram) -> Any:
    one = p.tensor().clone()
    if one.dim() < 2:
        one = one.reshape(1, 1, -1)
    one[masked_key(p, one)] = p.number()
    return one


# ---- writes where memory is shared -----------------------------------------------------------------------------------

ENTRYWISE = ["index_copy_", "index_add_", "scatter_", "scatter_add_", "put_", "masked_scatter_", "index_fill_"]


@step(2)
def written_over_itself(p: OpProgram) -> Any:
    """A write by positions that reads, or has as positions, what it writes; most of these are refused."""
    one = p.tensor().clone().reshape(-1)[:4]
    name = p.pick(ENTRYWISE)
    source = p.random.choice([one, one.view_as(one), one.clone()])
    at = p.torch.arange(one.numel())
    if p.kind(one) == "int64" and p.chance(0.4):
        at = one
    if name == "index_fill_":
        return one.index_fill_(0, at, p.number())
    if name == "put_":
        return one.put_(at, source)
    if name == "masked_scatter_":
        # Where only some are written, what it reads of them depends on how far its kernel has come.
        return one.masked_scatter_(p.torch.ones(one.shape, dtype=p.torch.bool), source)
    found = getattr(one, name)(0, at, source)
    return Inexact(found) if name.endswith("add_") and not whole(p, one) else found


LAZY_WRITES = [
    "fill_",
    "zero_",
    "add_",
    "mul_",
    "neg_",
    "masked_fill_",
    "index_fill_",
    "copy_",
    "conj_physical_",
    "tril_",
]


@step(2)
def written_through_bits(p: OpProgram) -> Any:
    """A write into a tensor that is read conjugated or negated, now and then an expanded one."""
    one = p.tensor(COMPLEX).clone()
    one = one if one.is_complex() else (p.torch.arange(4.0).reshape(2, 2) * (1 - 2j)).to(p.torch.complex128)
    one = one.expand(2, *one.shape) if p.chance(0.2) else one
    turned = p.random.choice([lambda: one.conj(), lambda: one.conj().imag, lambda: one.imag, lambda: one.real])()
    name = p.pick(LAZY_WRITES)
    if name in ("masked_fill_", "index_fill_"):
        value = p.pick([2, 0.5, 1 + 2j])
        found = turned.index_fill_(p.dim(turned), p.torch.tensor([0]), value) if name == "index_fill_" else (
            turned.masked_fill_(p.torch.ones(turned.shape[-1:], dtype=p.torch.bool), value))  # fmt: skip
        return [found, one]
    if name in ("fill_", "add_", "mul_"):
        found = getattr(turned, name)(p.pick([2, 0.5, -1, 1 - 1j]))
    elif name == "copy_":
        found = turned.copy_(p.random.choice([one.clone(), one.real.clone(), turned.clone()]))
    else:
        found = getattr(turned, name)()
    return Inexact([found, one])


@step(1)
def out_anywhere(p: OpProgram) -> Any:
    """``out=`` that is laid out in another order, expanded, or read conjugated."""
    one, torch = p.tensor(), p.torch
    out = torch.zeros_like(one, dtype=p.dtype(["float64", "complex64", "int64"]))
    out = p.random.choice([lambda: out, lambda: out.clone().mT if out.dim() > 1 else out, lambda: out.conj(),
                           lambda: out[..., :1].expand(out.shape) if out.dim() else out])()  # fmt: skip
    if overlaps(out):
        out = out.clone()
    name = p.pick(["neg", "add", "mul", "where", "clamp", "cumsum", "flip", "eq"])
    if name == "where":
        return torch.where(one == 0, one, one, out=out)
    if name in ("neg", "clamp"):
        return Inexact(torch.neg(one, out=out) if name == "neg" else torch.clamp(one, 0, 2, out=out))
    if name in ("cumsum", "flip"):
        return Inexact(torch.cumsum(one, p.dim(one), out=out) if name == "cumsum" else torch.flip(one, (0,)))
    return Inexact(getattr(torch, name)(one, p.number_for(one), out=out))
