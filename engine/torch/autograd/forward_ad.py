"""``torch.autograd.forward_ad``: dual tensors, which carry a tangent through every op.

The tangent of an op's result needs no formulas of its own. A view of the tensor is the same view of the tangent; for
other ops the backward formula, which is linear in its incoming gradient, is differentiated by that gradient: the
transpose of the transposed Jacobian is the Jacobian.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from stridescope.engine.autograd import api
from stridescope.engine.autograd.blank import zeros_like
from stridescope.engine.autograd.leaf import leaf_at
from stridescope.engine.autograd.lockstep import run_of
from stridescope.engine.autograd.modes import ForwardMode, ModeContext, enable_grad
from stridescope.engine.dispatch.op import Op
from stridescope.engine.dispatch.recorded import Interceptors
from stridescope.engine.events import journal
from stridescope.engine.ops.generator import default_generator
from stridescope.engine.tensor import Tensor, alias
from stridescope.engine.torch.autograd import forward_refusals
from stridescope.engine.torch.autograd.forward_formulas import FORMULAS

# Of each element alone, with a backward that has no derivative: it is its own transpose.
ELEMENTWISE = frozenset(("hardsigmoid",))


class _Levels:
    """How many dual levels are entered (-1: none), and whether the interceptor itself is at work."""

    current = -1
    busy = False


def entered() -> bool:
    """Whether a level is entered."""
    return _Levels.current >= 0


class UnpackedDualTensor(NamedTuple):
    """What ``unpack_dual`` returns."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Enter a level in which dual tensors can be made."""
    if _Levels.current >= 0:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _Levels.current += 1
    ForwardMode.custom = _custom
    ForwardMode.serial += 1
    Interceptors.before.append(_push)
    journal.require_full(1)
    return _Levels.current


def exit_dual_level(*, level: int | None = None) -> None:
    """Leave the last level; its tangents are gone."""
    if _Levels.current < 0 and level is None:
        raise RuntimeError("Dual level must be a positive number.")
    if level is not None and level != _Levels.current:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    ForwardMode.custom = None
    Interceptors.before.remove(_push)
    journal.require_full(-1)
    _Levels.current -= 1


class dual_level(ModeContext):  # noqa: N801
    """``with dual_level():`` a level of forward-mode differentiation."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """An alias of ``tensor`` that carries ``tangent``."""
    if (run := run_of((tensor, tangent))) is not None:  # each example has its own tangent
        return run.lifted(functools.partial(make_dual, level=level), tensor, tangent)  # type: ignore[no-any-return]
    level = _Levels.current if level is None else level
    if level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    if level > _Levels.current:
        raise RuntimeError("Invalid level given to _make_dual")
    for name, one in (("primal", tensor), ("tangent", tangent)):
        if not (one.dtype.is_floating_point or one.dtype.is_complex):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {one.dtype}")
    if _tangent(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level "
            f"{level} is not supported."
        )
    _check_sizes(tensor, tangent)
    dual: Tensor = _again(tensor)
    _set_tangent(dual, _laid_out(tangent, dual))
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The primal and the tangent of a dual tensor; the tangent of a plain one is None."""
    if (run := run_of(tensor)) is not None:
        return run.lifted(functools.partial(unpack_dual, level=level), tensor)  # type: ignore[no-any-return]
    if (_Levels.current if level is None else level) < 0:
        return UnpackedDualTensor(tensor, None)
    tangent = _tangent(tensor)
    primal = tensor if tangent is None else _again(tensor)
    if primal is not tensor:
        primal.__dict__.pop("_tangents", None)
    return UnpackedDualTensor(primal, tangent)


def _again(tensor: Tensor) -> Any:
    """Another tensor on the same memory, with the same history, and without tangents."""
    return tensor.view_as(tensor) if tensor._requires_grad else alias(tensor)


def _check_sizes(tensor: Tensor, tangent: Tensor) -> None:
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )


def _check_spread(args: Sequence[Any], result: Any) -> None:
    """Refuse random numbers of a mean or spread that is stretched: PyTorch gives them tangents of its size."""
    for value in args[:2]:
        if _tangent(value) is not None:
            _check_sizes(result, value)
            return


def _tangent(value: Any) -> Tensor | None:
    if not isinstance(value, Tensor):
        return None
    found: Tensor | None = value.__dict__.get("_tangents", {}).get(ForwardMode.serial)
    return found


def _set_tangent(tensor: Tensor, tangent: Tensor | None) -> None:
    if tangent is not None:
        tensor.__dict__.setdefault("_tangents", {})[ForwardMode.serial] = tangent


def _push(op: Op, call: Callable[..., Any], *args: Any) -> Any:
    """Run an op, and give its results their tangents."""
    if _Levels.busy or op.composite is not None or not any(_tangent(a) is not None for a in _flat(args)):
        return call(*args)
    forward_refusals.refuse(op)
    if op.schema.writes:
        return _relaid(op, call, args) if hasattr(op.run, "relayouts") else _written(op, call, args)
    noise = default_generator.get_state()
    result = call(*args)
    if op.name == "normal":
        _check_spread(args, result)
    if op.derivative is not None:
        _Levels.busy = True
        try:
            tangents = _viewed(op, args) if op.view else _computed(op, args, result, noise)
            for out, tangent in zip(_several(result), tangents, strict=True):
                _set_tangent(out, tangent if op.view else _own(tangent, args, out))
        finally:
            _Levels.busy = False
    return result


def _computed(op: Op, args: tuple[Any, ...], result: Any, noise: Tensor) -> tuple[Tensor | None, ...]:
    formula, own = FORMULAS.get(op.name), _tangent(args[0])
    if formula is None or own is None:
        return _pushed_with(noise, op, args)
    with enable_grad():
        return formula([_primal(a) for a in args], own, [_primal(out) for out in _several(result)])


def _primal(value: Any) -> Any:
    """A tensor without its tangents; its history stays."""
    if _tangent(value) is None:
        return value
    made = _again(value)
    made.__dict__.pop("_tangents", None)
    return made


def _relaid(op: Op, call: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """An op that changes the tensor's own sizes and strides: those of its tangent change likewise."""
    own = _tangent(args[0])
    result = call(*args)
    _Levels.busy = True
    try:
        _set_tangent(args[0], None if own is None else op.call(alias(own), *args[1:]))
    finally:
        _Levels.busy = False
    return result


def _pushed_with(noise: Tensor, op: Op, args: tuple[Any, ...]) -> tuple[Tensor | None, ...]:
    """The tangents of an op's results, where it is run once more with the random numbers that it had."""
    after = default_generator.get_state()
    default_generator.set_state(noise)
    try:
        return _pushed(op, args)
    finally:
        default_generator.set_state(after)


def _custom(run: Callable[[], Any], args: tuple[Any, ...]) -> Any:
    """Call a custom function: its ``forward`` makes no tangents, its ``jvp`` does."""
    tangents = [_tangent(arg) for arg in args]
    busy, _Levels.busy = _Levels.busy, True
    try:
        outputs, node, single = run()
        if busy or all(tangent is None for tangent in tangents):
            return outputs, node, single
        given = [_filled(node, arg, tangent) for arg, tangent in zip(args, tangents, strict=True)]
    finally:
        _Levels.busy = busy
    results = node.apply_jvp(*given)
    found = results if isinstance(results, tuple) else (results,)
    if len(found) != len(outputs):
        raise RuntimeError(
            "Function's jvp returned an invalid number of forward gradients "
            f"(expected {len(outputs)} but got {len(found)})"
        )
    written = {id(arg): tangent for arg, tangent in zip(args, given, strict=True) if isinstance(arg, Tensor)}
    for number, (out, tangent) in enumerate(zip(outputs, found, strict=True)):
        _check_jvp(number, out, tangent, written)
        if tangent is not None:
            _set_tangent(out, tangent)
    return outputs, node, single


def _filled(node: Any, arg: Any, tangent: Tensor | None) -> Tensor | None:
    """What ``jvp`` is given for an argument: zeros for a tensor without a tangent, unless it asks for None."""
    if tangent is not None or not isinstance(arg, Tensor) or not node.materialize_grads:
        return tangent
    return zeros_like(arg) if arg.dtype.is_floating_point or arg.dtype.is_complex else None


def _check_jvp(number: int, out: Any, tangent: Any, written: dict[int, Any]) -> None:
    """Raise RuntimeError for what ``jvp`` may not return for this result."""
    if tangent is None:
        return
    if not isinstance(tangent, Tensor):
        raise RuntimeError(f"expected Variable or None (got {type(tangent).__name__}) for grad output {number}.")
    _check_sizes(out, tangent)
    if id(out) in written:
        if written[id(out)] is not tangent:
            raise RuntimeError(
                "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is "
                "modifying an input inplace, then the jvp function must modify the corresponding gradient inplace."
            )
    elif out._base_tensor is not None and tangent._base_tensor is None:
        raise RuntimeError(
            "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
        )


def _own(tangent: Tensor | None, args: Sequence[Any], out: Tensor) -> Tensor | None:
    """A tangent that no argument has: the result of ``clone`` may be written without a trace in what was cloned."""
    if tangent is None:
        return None
    laid = _laid_out(tangent, out)
    given = [own for own in map(_tangent, _flat(args)) if own is not None]
    return laid.clone() if any(own.storage_ is laid.storage_ for own in given) else laid


def _laid_out(tangent: Tensor, primal: Tensor) -> Tensor:
    """The tangent with the strides of its primal, so that a view of the one is a view of the other."""
    laid = zip(primal._array.shape, tangent.strides, primal.strides, strict=True)
    if not primal._array.size or all(own == wanted or size == 1 for size, own, wanted in laid):
        return tangent
    room = 1 + sum((size - 1) * step for size, step in zip(primal._array.shape, primal.strides, strict=True))
    whole = tangent.new_zeros(room).as_strided(primal._array.shape, primal.strides)
    return whole.copy_(tangent)  # type: ignore[no-any-return]


def detached(tensor: Tensor) -> Tensor:
    """The tensor without its history in the graph, but with its tangents, without theirs."""
    if (run := run_of(tensor)) is not None:
        return run.lifted(detached, tensor)  # type: ignore[no-any-return]
    made: Tensor = tensor.detach()
    if tangents := tensor.__dict__.get("_tangents"):
        made.__dict__["_tangents"] = {level: alias(tangent) for level, tangent in tangents.items()}
    return made


def _flat(args: Sequence[Any]) -> list[Any]:
    flat: list[Any] = []
    for value in args:
        flat.extend(value) if isinstance(value, (list, tuple)) else flat.append(value)
    return flat


def _several(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def _viewed(op: Op, args: tuple[Any, ...]) -> tuple[Any, ...]:
    return _several(op.call(_tangent(args[0]), *args[1:]))


def _written(op: Op, call: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """An in-place op: the tangent that the same op, out of place, would have given."""
    _Levels.busy = True
    try:
        before = args[0].detach().clone()
        _set_tangent(before, _tangent(args[0]) if _tangent(args[0]) is not None else zeros_like(before))
        tangents = _pushed(op, (before, *args[1:]))
    finally:
        _Levels.busy = False
    result = call(*args)
    old = _tangent(args[0])
    if old is not None and tangents[0] is not None:
        old.copy_(tangents[0])
    else:
        _start_tangent(args[0], tangents[0])
    return result


def _start_tangent(target: Tensor, tangent: Tensor | None) -> None:
    """A tensor without a tangent was written with one; a view's is a view of its base's."""
    base = target._base_tensor
    if tangent is None or base is None or _tangent(base) is not None:
        _set_tangent(target, tangent)
        return
    whole = zeros_like(base)
    _set_tangent(base, whole)
    part = whole.as_strided(target._array.shape, target.strides, target.offset - base.offset)
    _set_tangent(target, part.copy_(tangent))


def _pushed(op: Op, args: tuple[Any, ...]) -> tuple[Tensor | None, ...]:
    """The tangents of an op's results, by differentiating its backward by the incoming gradient."""
    with enable_grad():
        sources: list[Tensor] = []
        vectors: list[Tensor] = []
        points = [_source(a, sources, vectors) for a in args]
        if op.schema.writes:
            points[0] = points[0].clone()  # a leaf may not be written
        outputs = _several(op.call(*points))
        kept = [i for i, out in enumerate(outputs) if isinstance(out, Tensor) and out._requires_grad]
        tangents: list[Tensor | None] = [None] * len(outputs)
        for number in kept:
            if op.name.removesuffix("_") in ELEMENTWISE:
                tangents[number] = api.grad(outputs[number], sources, vectors[0])[0]
                continue
            start = leaf_at(zeros_like(outputs[number]))
            back = api.grad(outputs[number], sources, start, create_graph=True, allow_unused=True)
            pairs = [(b, v) for b, v in zip(back, vectors, strict=True) if b is not None and b._requires_grad]
            if pairs:
                backs, directions = zip(*pairs, strict=True)
                keep = any(d._requires_grad for d in directions) or any(_tracked_before(a) for a in _flat(args))
                (pushed,) = api.grad(backs, start, directions, create_graph=keep, allow_unused=True, retain_graph=True)
                tangents[number] = zeros_like(outputs[number]) if pushed is None else pushed
            elif _depends(op, args):
                tangents[number] = zeros_like(outputs[number])  # it is flat
    return tuple(tangents)


def _depends(op: Op, args: tuple[Any, ...]) -> bool:
    """Whether an argument that the op can be differentiated by has a tangent."""
    places = () if op.derivative is None else op.derivative.indices
    return any(_tangent(value) is not None for value in _flat([args[place] for place in places]))


def _tracked_before(value: Any) -> bool:
    return isinstance(value, Tensor) and value._requires_grad


def _source(value: Any, sources: list[Tensor], vectors: list[Tensor]) -> Any:
    """An argument to differentiate by: an alias where it has a tangent."""
    if isinstance(value, (list, tuple)) and any(isinstance(item, Tensor) for item in value):
        return [_source(item, sources, vectors) for item in value]
    tangent = _tangent(value)
    if tangent is None:
        return value
    source = value.view_as(value) if value._requires_grad else leaf_at(value)
    sources.append(source)
    vectors.append(tangent)
    return source


for _class in (UnpackedDualTensor, dual_level):
    _class.__module__ = "torch.autograd.forward_ad"
__all__ = [
    "UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual",
]  # fmt: skip
