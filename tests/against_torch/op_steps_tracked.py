"""Steps of the op programs that run another step in a setting: with gradients, another default dtype, other modes.

Whatever any step can do is so done once more: its results are differentiated, once or twice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from op_programs import FLOATS, STEPS, Inexact, OpProgram, step, tensors_in

# Of equal elements these take either, and so does their gradient: they get distinct ones.
OF_ORDER = {"ordered", "with_index", "reduced", "binary", "clamped", "activated"}
# Their results are drawn from what the step itself seeds, or they have side effects of their own.
ALONE = {"tracked", "under_mode", "under_default", "drawn", "printed", "resized", "into_out"}


def plain_step(p: OpProgram, but: set[str]) -> Callable[[OpProgram], Any]:
    """Another step, which is no setting itself."""
    known = [(f, w) for f, w in STEPS["ops"] if f.__name__ not in but]
    (function,) = p.random.choices([f for f, _ in known], [w for _, w in known])
    p.words.append(function.__name__)
    return function


# ---- with gradients --------------------------------------------------------------------------------------------------


def leaf_like(p: OpProgram, one: Any, raw: bool) -> Any:
    """A double-precision leaf in the same layout; with other elements that are all finite and different, unless raw."""
    wide = one.detach().cdouble() if one.is_complex() else one.detach().double()
    if not raw:
        steps = p.torch.arange(one.numel(), dtype=p.torch.float64).reshape(one.shape) / 64 + 0.03
        wide = (wide if one.is_complex() else wide.nan_to_num(0.5, 1.5, -1.5)) + steps
    return wide.clone().resolve_conj().requires_grad_()


def leaves_of(p: OpProgram, raw: bool) -> dict[str, Any]:
    floating = {n: t for n, t in p.tensors.items() if t.is_floating_point() or t.is_complex()}
    return {name: leaf_like(p, one, raw) for name, one in floating.items()}


@step(10)
def tracked(p: OpProgram) -> Any:
    """A step over leaves that require gradients, and the gradients of its results."""
    kept, raw = dict(p.tensors), p.chance(0.2)
    function = plain_step(p, ALONE | (OF_ORDER if raw else set()))
    leaves = leaves_of(p, raw)
    copied = p.chance(0.3)
    p.tensors = {**p.tensors, **{n: t.clone() if copied else t for n, t in leaves.items()}}
    try:
        value = function(p)
        value = value.value if isinstance(value, Inexact) else value
        return Inexact([value, *gradients(p, value, list(leaves.values()))])
    finally:
        p.tensors = kept


def gradients(p: OpProgram, value: Any, leaves: list[Any]) -> list[Any]:
    """The nodes of results, and what a weighted sum of them gives to each leaf; also of second order."""
    tracked = [t for t in tensors_in(p.torch, value) if t.requires_grad]
    nodes = [said_node(t) for t in tracked]
    if not tracked:
        return nodes
    twice = p.chance(0.3)
    weights = [weight(p, t) for t in tracked]
    first = p.torch.autograd.grad(tracked, leaves, weights, create_graph=twice, allow_unused=True)
    seen = [nodes, [None if g is None else g.detach().clone() for g in first]]
    again = [g for g in first if g is not None and g.requires_grad] if twice else []
    if again:
        weights = [weight(p, t) for t in again]
        second = p.torch.autograd.grad(again, leaves, weights, allow_unused=True)
        seen.append([None if g is None else row_major(p, g) for g in second])  # layouts as in weight
    return seen


def row_major(p: OpProgram, one: Any) -> Any:
    return p.torch.zeros(one.shape, dtype=one.dtype).copy_(one)


def weight(p: OpProgram, one: Any) -> Any:
    """A gradient in the layout of the tensor: of other layouts a formula of many ops keeps what one kernel does not."""
    steps = p.torch.arange(one.numel(), dtype=p.torch.float64).reshape(one.shape)
    return p.torch.zeros_like(one, requires_grad=False).copy_(steps / 4 + 0.5)


def said_node(one: Any) -> list[Any]:
    node = one.grad_fn
    return [] if node is None else [node.name(), [None if n is None else n.name() for n, _ in node.next_functions]]


# ---- in other modes --------------------------------------------------------------------------------------------------


@step(2)
def under_mode(p: OpProgram) -> Any:
    """A step with gradients switched off, in inference mode, or under autocast, where only layouts are compared."""
    function = plain_step(p, ALONE | {"written", "changed", "filled", "augmented", "assigned", "gathered"})
    name = p.pick(["no_grad", "inference_mode", "autocast"])
    if name != "autocast":
        with getattr(p.torch, name)():
            value = function(p)
        value = value.value if isinstance(value, Inexact) else value
        return Inexact([[t.requires_grad, t.is_inference()] for t in tensors_in(p.torch, value)])
    with p.torch.autocast("cpu", p.dtype(["bfloat16", "float16"])):
        value = function(p)
    value = value.value if isinstance(value, Inexact) else value
    return Inexact([[p.kind(t), tuple(t.shape), t.stride()] for t in tensors_in(p.torch, value)])


@contextlib.contextmanager
def default_dtype(p: OpProgram, kind: Any) -> Any:
    p.torch.set_default_dtype(kind)
    try:
        yield
    finally:
        p.torch.set_default_dtype(p.torch.float32)


@step(2)
def under_default(p: OpProgram) -> Any:
    """A step while another dtype is the default."""
    function = plain_step(p, ALONE)
    with default_dtype(p, p.dtype(FLOATS)):
        value = function(p)
        return Inexact(value.value if isinstance(value, Inexact) else value)
