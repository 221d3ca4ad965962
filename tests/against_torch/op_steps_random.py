"""The steps of the op programs that draw random numbers, each from a seed of its own, and that print tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from op_programs import COMMON, DTYPES, FLOATS, INTEGERS, Inexact, OpProgram, step

# ---- random numbers --------------------------------------------------------------------------------------------------

SIZES = [(3,), (2, 3), (16,), (4, 5), (), (0,), (1, 37)]
FILLS: dict[str, list[tuple[Any, ...]]] = {
    "uniform_": [(), (-1, 2), (0.5,)],
    "normal_": [(), (1.0, 2.0), (0, 0.5), (0, -1)],
    "random_": [(), (5,), (2, 9), (4, 2)],
    "bernoulli_": [(), (0.3,), (1.5,)],
    "exponential_": [(), (2.0,), (0,)],
    "geometric_": [(0.5,), (0.1,), (2.0,)],
    "log_normal_": [(), (0.5, 0.5)],
    "cauchy_": [(), (1.0, 2.0)],
}


def source_of(p: OpProgram) -> dict[str, Any]:
    """A seed for the global stream, or a generator of its own."""
    seed = p.pick([0, 1, 42, 2**40 + 3, -7])
    if p.chance(0.5):
        p.torch.manual_seed(seed)
        return {}
    return {"generator": p.torch.Generator().manual_seed(seed)}


def then(p: OpProgram, found: Any, source: dict[str, Any]) -> Any:
    """What was drawn, and what the stream gives next: how much of it was used."""
    return Inexact([found, p.torch.rand(2, **source)])


@step(2)
def drawn(p: OpProgram) -> Any:
    """New tensors of random numbers."""
    source, torch = source_of(p), p.torch
    name = p.pick(["rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial", "randint_from"])
    options = p.options(dtype=[p.dtype(FLOATS if name in ("rand", "randn") else DTYPES)])
    if name in ("rand", "randn"):
        return then(p, getattr(torch, name)(p.pick(SIZES), **source, **options), source)
    if name == "randint":
        return then(p, torch.randint(p.pick([1, 7, 100, 0]), p.pick(SIZES), **source, **options), source)
    if name == "randint_from":
        return then(p, torch.randint(-3, p.pick([-2, 4, -5]), p.pick(SIZES), **source, **options), source)
    if name == "randperm":
        return then(p, torch.randperm(p.pick([0, 1, 5, 20]), **source, **options), source)
    return then(p, drawn_by(p, name, source), source)


def drawn_by(p: OpProgram, name: str, source: dict[str, Any]) -> Any:
    """Numbers drawn by the values of a tensor."""
    torch = p.torch
    if name == "multinomial":
        weights = torch.tensor([[1.0, 2.0, 0.5, 3.0], [0.0, 1.0, 4.0, 1.0]], dtype=p.dtype(["float32", "float64"]))
        return torch.multinomial(weights, p.pick([1, 2, 5, 3]), **p.options(replacement=[True, False]), **source)
    if name == "bernoulli":
        chances = torch.full(p.pick(SIZES), p.pick([0.5, 0.25, 1.0]), dtype=p.dtype([*FLOATS, "int64"]))
        return torch.bernoulli(chances, **source)
    spread = torch.arange(4.0).to(p.dtype(["float32", "float64"]))
    forms: list[Callable[[], Any]] = [
        lambda: torch.normal(spread, 0.5, **source),
        lambda: torch.normal(1.0, spread, **source),
        lambda: torch.normal(spread, spread + 1, **source),
        lambda: torch.normal(1.0, 2.0, p.pick(SIZES), **source),
        lambda: torch.normal(spread, -1.0, **source),
    ]
    return p.random.choice(forms)()


@step(2)
def drawn_in_place(p: OpProgram) -> Any:
    """Random numbers written over a tensor of any layout."""
    source, name = source_of(p), p.pick(FILLS)
    one = p.target().clone() if p.chance(0.5) else p.target()
    arguments = p.pick(FILLS[name])
    if name == "bernoulli_" and p.chance(0.3):
        arguments = (p.torch.full(one.shape, 0.4),)
    if name == "random_" and not arguments and one.is_floating_point():  # 2 ** 53 of them: seldom alike when printed
        arguments = (5,)
    found = getattr(one, name)(*arguments, **source)
    seen = then(p, found.clone(), source)
    one.zero_()  # what is free in its last digits does not stay
    return seen


@step(1)
def drawn_alike(p: OpProgram) -> Any:
    """Functions that draw from the global stream alone."""
    p.torch.manual_seed(p.pick([3, 99]))
    one, nn = p.tensor(), p.torch.nn.functional
    name = p.pick(["rand_like", "randn_like", "randint_like", "dropout", "alpha_dropout", "feature_dropout",
                   "rrelu", "gumbel_softmax", "fork", "state"])  # fmt: skip
    if name in ("rand_like", "randn_like"):
        return then(p, getattr(p.torch, name)(one, **p.options(dtype=[p.dtype(FLOATS)])), {})
    if name == "randint_like":
        return then(p, p.torch.randint_like(one, *p.pick([(5,), (2, 9)])), {})
    if name in ("dropout", "alpha_dropout", "feature_dropout"):
        function = nn.dropout1d if name == "feature_dropout" else getattr(nn, name)
        return then(p, function(one, p.pick([0.5, 0.2, 0.0, 1.0]), True), {})
    if name in ("rrelu", "gumbel_softmax"):
        return then(p, nn.rrelu(one, training=True) if name == "rrelu" else nn.gumbel_softmax(one, dim=p.dim(one)), {})
    state = p.torch.get_rng_state()
    first = p.torch.rand(3)
    if name == "fork":
        with p.torch.random.fork_rng():
            p.torch.manual_seed(5)
            first = p.torch.rand(3)
    else:
        p.torch.set_rng_state(state)
    return then(p, [first, p.torch.initial_seed()], {})


# ---- printing --------------------------------------------------------------------------------------------------------


@step(4)
def printed(p: OpProgram) -> Any:
    """A tensor's text under some print options."""
    one, torch = p.tensor(), p.torch
    one = one * p.pick([1, 1000, 1e-4, 1e6, 0.1]) if p.kind(one) in ("float32", "float64") and p.chance(0.4) else one
    options = p.options(precision=[0, 1, 2, 6], sci_mode=[True, False], linewidth=[20, 40, 120],
                        threshold=[0, 3], edgeitems=[1, 2])  # fmt: skip
    torch.set_printoptions(**(options or {"profile": p.pick(["default", "short", "full"])}))
    try:
        return repr(texted(p, one))
    finally:
        torch.set_printoptions(profile="default")


def texted(p: OpProgram, one: Any) -> str:
    """By one of the ways a tensor becomes text."""
    way = p.pick(["repr", "str", "format", "tracked", "parameter", "node", "list"])
    if way in ("repr", "str"):
        return repr(one) if way == "repr" else str(one)
    if way == "format":
        return f"{one:>9}" if one.dim() else f"{one:{p.pick(['.2f', '', '8.3f', 'd', '.1e'])}}"
    if way == "list":
        return str([one, one.shape, one.dtype, one.stride()])
    floating = one if one.is_floating_point() or one.is_complex() else one.double()
    leaf = floating.detach().clone().requires_grad_()
    if way == "parameter":
        return repr(p.torch.nn.Parameter(leaf.detach()))
    return repr(leaf if way == "tracked" else leaf.view(-1) if p.chance(0.5) else leaf * 2)


# ---- numbers of dtypes -----------------------------------------------------------------------------------------------


@step(1)
def limits(p: OpProgram) -> Any:
    """What is known of dtypes."""
    kind = p.dtype([k for k in DTYPES if k != "float16"])  # its complex dtype is refused
    if p.chance(0.5):
        about = p.torch.finfo(kind) if p.chance(0.6) else p.torch.iinfo(kind)
        name = p.pick(["max", "min", "bits", "dtype", "eps", "tiny", "smallest_normal", "resolution"])
        return [getattr(about, name), repr(about)]
    other = p.dtype([*COMMON, *INTEGERS])
    return [str(kind), kind.itemsize, kind.is_signed, str(kind.to_complex()) if kind.is_floating_point else "",
            str(kind.to_real()), p.torch.can_cast(kind, other), str(p.torch.promote_types(kind, other))]  # fmt: skip
