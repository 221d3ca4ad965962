"""Plans: what a call keeps for backward, and how its formulas are then run.

Every tracked op passes here twice, so both halves are written out as the source of one function for each op and each
set of inputs that need a gradient: what is decided by the declaration is decided once, not in every call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.autograd.one_node import as_one_node
from stridescope.engine.autograd.saved import read, unpacked
from stridescope.engine.tensor import Tensor

if TYPE_CHECKING:
    from stridescope.engine.autograd.formula import Derivative, Formula

# What a formula's parameter may ask of a tensor argument, beside the tensor itself: suffix -> how to get it.
FACETS: dict[str, str] = {
    "_sym_sizes": "{}._array.shape",
    "_sym_sizes_opt": "{}._array.shape",
    "_sym_argsize_0": "{}._array.shape[0]",
    "_sym_argsize_1": "{}._array.shape[1]",
    "_sym_argsize_2": "{}._array.shape[2]",
    "_sym_argsize_minus_1": "{}._array.shape[-1]",
    "_sym_argsize_minus_2": "{}._array.shape[-2]",
    "_sym_strides": "{}.strides",
    "_sym_storage_offset": "{}.offset",
    "_sym_numel": "{}._array.size",
    "_scalar_type": "{}.dtype",
    "_device": "{}.device",
    "_geometry": "{}.layout_",
    "_dim": "{}._array.ndim",
}
INCOMING = frozenset({"grad", "grads", "needs"})


class Keep(NamedTuple):
    """One thing a node saves: its name, and where the call has it (an argument's or result's position)."""

    name: str
    of_result: bool
    place: int  # -1: all results
    facet: str  # the suffix, one of FACETS; empty for the value itself


class Plan(NamedTuple):
    """What a call does whose inputs need these gradients.

    Attributes:
        needed: which differentiable inputs need a gradient.
        of_args, of_results: what it keeps.
        tensors: the names of what may be tensors, and so goes when the graph is freed.
        in_order: the same in the order in which they are saved.
        save: ``save(kept, *arguments)`` gives all of ``of_args`` by name, tensors as ``kept(name, value)`` has them.
        run: ``run(node, gradients, recorded)`` gives one gradient (or list of them) per differentiable input;
            ``recorded`` says whether the formulas are themselves recorded (``create_graph``) or shown.
    """

    needed: tuple[bool, ...]
    of_args: tuple[Keep, ...]
    of_results: tuple[Keep, ...]
    tensors: tuple[str, ...]
    in_order: tuple[str, ...]
    save: Callable[..., dict[str, Any]]
    run: Callable[..., tuple[Any, ...]]


def planned(derivative: Derivative, needed: tuple[bool, ...]) -> Plan:
    """Plan for inputs of which these need a gradient.

    A tensor used by one formula only is saved when that formula is needed; everything else always is.
    """
    wanted = {name for name, need in zip(derivative.inputs, needed, strict=True) if need}
    active = [f for f in derivative.formulas if wanted.intersection(f.inputs)]
    active_wants = {want for f in active for want in f.wants}
    asked = [w for f in derivative.formulas for w in f.wants if w not in INCOMING]
    kept = dict.fromkeys(w for w in asked if w in active_wants or w not in derivative.guarded)
    keeps = [derivative.keep(name) for name in sorted(kept)]
    of_args = tuple(keep for keep in keeps if not keep.of_result)
    of_results = tuple(keep for keep in keeps if keep.of_result)
    tensors = tuple(keep.name for keep in keeps if derivative.keeps_tensors(keep.name))
    in_order = tuple(keep.name for keep in (*of_args, *of_results) if keep.name in tensors)
    run = _runner(derivative, active, needed, (*of_args, *of_results))
    return Plan(needed, of_args, of_results, tensors, in_order, _saver(derivative, of_args), run)


def _saver(derivative: Derivative, keeps: Sequence[Keep]) -> Callable[..., dict[str, Any]]:
    names = [f"a{place}" for place in range(len(derivative.arguments))]
    parts = [f"{keep.name!r}: {_kept(derivative, keep, names[keep.place])}" for keep in keeps]
    scope = {"Tensor": Tensor, **{f"facet{suffix}": facet for suffix, facet in FACET_OF.items()}}
    source = f"lambda kept, {', '.join(names)}: {{{', '.join(parts)}}}"
    saver: Callable[..., dict[str, Any]] = eval(compile(source, f"<op {derivative.name}>", "eval"), scope)
    return saver


def _kept(derivative: Derivative, keep: Keep, value: str) -> str:
    if not keep.facet:
        return f"kept({keep.name!r}, {value})"
    whole = FACETS[keep.facet].format(value)
    return f"{whole} if isinstance({value}, Tensor) else facet{keep.facet}({value})"


def _facet(suffix: str) -> Callable[[Any], Any]:
    """The facet of a tensor, or of each tensor in a list; None stays None."""
    facet = eval(f"lambda tensor: {FACETS[suffix].format('tensor')}")

    def of(value: Any) -> Any:
        if isinstance(value, Tensor):
            return facet(value)
        return [facet(item) for item in value] if isinstance(value, (list, tuple)) else None

    return of


FACET_OF = {suffix: _facet(suffix) for suffix in FACETS}


def _runner(
    derivative: Derivative, active: Sequence[Formula], needed: tuple[bool, ...], keeps: Sequence[Keep]
) -> Callable[..., tuple[Any, ...]]:
    """The needed formulas as one function; all that is saved is unpacked first, for overwritten tensors are refused."""
    values = {keep.name: f"v{number}" for number, keep in enumerate(keeps)}
    scope: dict[str, Any] = {"unpacked": unpacked, "read": read, "placed": placed, "Tensor": Tensor}
    lines = [f"{v} = saved[{name!r}]" for name, v in values.items()]
    for keep in keeps:
        if not keep.facet:
            v = values[keep.name]
            lines.append(f"if {v}.__class__ is not Tensor or {v}._version_counter is not None or {v}._detached:")
            lines.append(f"    {v} = unpacked({v}, node) if recorded else read({v}, node)")
    results = ["None"] * len(needed)
    for number, formula in enumerate(active):
        positions = [derivative.inputs.index(name) for name in formula.inputs]
        scope |= {f"f{number}": formula.function, f"n{number}": tuple(needed[p] for p in positions),
                  f"one{number}": as_one_node(derivative.name, formula.inputs, formula.function)}  # fmt: skip
        sources = {"grad": "grads[0]", "grads": "grads", "needs": f"n{number}", **values}
        plain = ", ".join(sources[want] for want in formula.wants)
        marked = ", ".join(f"placed({sources[w]})" if w in derivative.tensors else sources[w] for w in formula.wants)
        for position in positions:
            results[position] = f"r{position}"
        left = ", ".join(results[p] for p in positions)
        lines.append(f"{left} = one{number}({marked}) if recorded else f{number}({plain})")
    source = "def run(node, grads, recorded):\n    saved = node.saved\n    " + "\n    ".join(lines)
    exec(compile(f"{source}\n    return ({', '.join(results)},)\n", f"<op {derivative.name}>", "exec"), scope)
    run: Callable[..., tuple[Any, ...]] = scope["run"]
    return run


class _Placed:
    """Numbers that stand in a tensor's place: PyTorch has a tensor there, so its node has an edge for it."""

    class Float(float):
        """A float in a tensor's place."""

    class Int(int):
        """An int in a tensor's place."""


def placed(value: Any) -> Any:
    """A saved value of a Tensor argument for a formula: a number is marked where the formula is recorded or shown."""
    if not grad_mode.formula and grad_mode.shown is None:
        return value
    return _Placed.Float(value) if value.__class__ is float else _Placed.Int(value) if value.__class__ is int else value


def is_placed(value: Any) -> bool:
    """Whether a number stands in a tensor's place."""
    return isinstance(value, (_Placed.Float, _Placed.Int))
