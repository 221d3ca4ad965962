"""``torch.func``: functions of functions, built on ``torch.autograd.grad``.

``vmap`` is :mod:`stridescope.engine.torch._vmap`'s.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from stridescope.engine.autograd import api
from stridescope.engine.autograd.blank import zeros_like
from stridescope.engine.autograd.function import applied
from stridescope.engine.autograd.leaf import leaf_at
from stridescope.engine.autograd.lockstep import own as all_own
from stridescope.engine.autograd.lockstep import peel
from stridescope.engine.autograd.modes import enable_grad, transforms
from stridescope.engine.dtype import FLOAT
from stridescope.engine.ops import FUNCTIONS
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch import _captures
from stridescope.engine.torch._functional_call import called
from stridescope.engine.torch._not_yet import missing_from
from stridescope.engine.torch._trees import flatten, outline, structure, tree_map
from stridescope.engine.torch._vmap import vmap
from stridescope.engine.torch._vmap_level import NEEDS_CONTEXT
from stridescope.engine.torch._wrapped_text import Differentiated, differentiated, leaves_below
from stridescope.engine.torch.autograd import forward_ad

Function = Callable[..., Any]
Argnums = int | tuple[int, ...]


# ---- reverse mode ----------------------------------------------------------------------------------------------------


def _points(trees: Sequence[Any]) -> tuple[list[Tensor], list[Any]]:
    """Fresh points to differentiate at, as leaves and in their nests."""
    points: list[Tensor] = []

    def point(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(leaf)}")
        fresh: Tensor = peel(_point, leaf)
        points.append(fresh)
        return fresh

    return points, [tree_map(point, tree) for tree in trees]


def _point(leaf: Any) -> Any:
    """Where to differentiate: a leaf of its own, or a view that leads on to what is differentiated outside."""
    if leaf.dtype.category < FLOAT:
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    if leaf._requires_grad:
        return leaf.view_as(leaf)
    made = forward_ad.detached(leaf)
    made._requires_grad = True
    return made


def _chosen(argnums: Any, args: Sequence[Any]) -> tuple[int, ...]:
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    if len(set(numbers)) != len(numbers):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    for number in numbers:
        if not isinstance(number, int):
            raise RuntimeError(f"argnum must be int, got: {type(number)}")
        if not -len(args) <= number < len(args):
            raise RuntimeError(f"Got argnum={number}, but only {len(args)} positional inputs")
    return tuple(number % len(args) for number in numbers)


@contextlib.contextmanager
def _transforming(points: Sequence[Tensor]) -> Iterator[None]:
    """Inside, custom functions need a ``setup_context``; ``backward`` and writes into captured tensors are refused."""
    transforms.append(_custom)
    own = all_own(list(points))
    for point in own:
        point.__dict__["_point"] = True
    differentiated.append(Differentiated(len(transforms), frozenset(map(id, own))))
    try:
        with _captures.refused(points):
            yield
    finally:
        differentiated.pop()
        transforms.remove(_custom)


def _custom(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any], split: bool) -> Any:
    if not split:
        raise RuntimeError(NEEDS_CONTEXT)
    outer = [each for each in transforms if each is not _custom]
    return outer[-1](cls, args, kwargs, split) if outer else applied(cls, args, kwargs, split)


def _with_aux(output: Any, name: str, has_aux: bool) -> tuple[Any, Any]:
    """The output and what was returned beside it."""
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True")
    for leaf in flatten(output[1])[0]:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(leaf)}")
    return output


def _all_tensors(output: Any, name: str) -> None:
    for leaf in flatten(output)[0]:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{name}: expected f(*primals) to return only tensors, got unsupported type {type(leaf)}"
            )


def _settled(results: Sequence[Tensor], points: Sequence[Tensor]) -> list[Tensor]:
    """Without history where it leads only to the points themselves, as the outermost transform gives them."""
    own = {id(point) for point in all_own(list(points))}
    return [one if _leads_elsewhere(one, own) else forward_ad.detached(one) for one in results]


def _leads_elsewhere(tensor: Tensor, own: set[int]) -> bool:
    """Whether a tensor depends on other leaves; points of transforms that are over do not count."""
    others = [leaf for leaf in leaves_below(all_own([tensor])[0]) if id(leaf) not in own]
    active: set[int] = set().union(*(each.points for each in differentiated))
    return any("_point" not in leaf.__dict__ or id(leaf) in active for leaf in others)


def _call_at(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], numbers: tuple[int, ...]) -> Any:
    points, trees = _points([args[number] for number in numbers])
    given = list(args)
    for number, tree in zip(numbers, trees, strict=True):
        given[number] = tree
    with _transforming(points):
        return points, trees, func(*given, **kwargs)


def grad_and_value(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that computes the gradient of ``func`` (which gives a scalar) and its value."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with enable_grad():
            numbers = _chosen(argnums, args)
            points, trees, output = _call_at(func, args, kwargs, numbers)
            output, aux = _with_aux(output, "grad_and_value(f)(*args)", has_aux)
            _check_scalar(output)
            found = api.grad(output, points, create_graph=True, allow_unused=True) if output._requires_grad else None
        gradients = [
            zeros_like(p) if g is None else g for p, g in zip(points, found or [None] * len(points), strict=True)
        ]
        leaves, unflatten = flatten(tuple(trees))
        settled = iter(_settled(gradients, points))
        result = unflatten([next(settled) if isinstance(leaf, Tensor) else leaf for leaf in leaves])
        result = result[0] if isinstance(argnums, int) else result
        value = _settled([output], points)[0]
        if has_aux:
            return result, (value, tree_map(lambda leaf: _settle_leaf(leaf, points), aux))
        return result, value

    return wrapper


def _settle_leaf(leaf: Any, points: Sequence[Tensor]) -> Any:
    return _settled([leaf], points)[0] if isinstance(leaf, Tensor) else leaf


def _check_scalar(output: Any) -> None:
    if not isinstance(output, Tensor):
        raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}")
    if output.dim() != 0:
        raise RuntimeError(
            "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
            f"{output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
        )


def grad(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that computes the gradient of ``func``, which gives a scalar."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


def vjp(func: Function, *primals: Any, has_aux: bool = False) -> Any:
    """``func``'s output, and a function from cotangents to gradients."""
    with enable_grad():
        points, trees = _points(primals)
        with _transforming(points):
            output = func(*trees)
        output, aux = _with_aux(output, "vjp(f, *primals)", has_aux)
        _all_tensors(output, "vjp(f, *primals)")
    outputs, unflatten = flatten(output)

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool = True) -> Any:
        vectors, _ = flatten(cotangents)
        if outline(cotangents) != outline(output):
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {outline(cotangents)}, primal output: {outline(output)}"
            )
        pairs = [(o, v) for o, v in zip(outputs, vectors, strict=True) if o._requires_grad]
        found: Any = [None] * len(points)
        if pairs:
            outs, starts = zip(*pairs, strict=True)
            found = api.grad(outs, points, starts, retain_graph=True, create_graph=create_graph, allow_unused=True)
        gradients = _settled(
            [zeros_like(p) if g is None else g for p, g in zip(points, found, strict=True)], points
        )  # fmt: skip
        remaining = iter(gradients)
        return tuple(tree_map(lambda leaf: next(remaining) if isinstance(leaf, Tensor) else leaf, t) for t in trees)

    shown = unflatten(_settled(outputs, points))
    return (shown, pull, tree_map(lambda leaf: _settle_leaf(leaf, points), aux)) if has_aux else (shown, pull)


def jacrev(func: Function, argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None) -> Function:
    """A function that computes the Jacobian of ``func``, one row after another, whatever ``chunk_size`` says."""
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = _chosen(argnums, args)

        def at(*chosen: Any) -> Any:
            given = list(args)
            for number, tree in zip(numbers, chosen, strict=True):
                given[number] = tree
            return func(*given, **kwargs)

        made = vjp(at, *(args[number] for number in numbers), has_aux=has_aux)
        outputs, unflatten = flatten(made[0])
        rows = [_rows(made[1], outputs, unflatten, position) for position in range(len(outputs))]
        shaped = [row[0] if isinstance(argnums, int) else row for row in rows]
        return (unflatten(shaped), made[2]) if has_aux else unflatten(shaped)

    return wrapper


def _rows(pull: Function, outputs: list[Tensor], nest: Function, position: int) -> Any:
    """The Jacobian of one output with respect to each chosen argument."""
    output, found = outputs[position], []
    for element in range(output.numel()):
        vectors = [zeros_like(one).contiguous() for one in outputs]
        vectors[position]._array.reshape(-1)[element] = 1
        found.append(pull(nest(vectors)))
    columns = [flatten(row)[0] for row in found]
    _, unflatten = flatten(found[0])
    sizes = tuple(output.shape)
    return unflatten([_stack(list(c), 0).view((*sizes, *c[0].shape)) for c in zip(*columns, strict=True)])


def _stack(tensors: list[Any], dim: int) -> Any:
    return FUNCTIONS["torch"]["stack"](tensors, dim)


# ---- forward mode ----------------------------------------------------------------------------------------------------


_JVP = "jvp(f, primals, tangents)"


def _check_primals(primals: Any, tangents: Any) -> None:
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{_JVP}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )  # fmt: skip
    if structure(primals) != structure(tangents):
        raise RuntimeError(
            f"{_JVP}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got primals with structure {structure(primals)} and tangents "
            f"with structure {structure(tangents)}"
        )
    for leaf in flatten(primals)[0]:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{_JVP}: Expected primals to only contain Tensors, got {type(leaf)}")
    if not flatten(primals)[0]:
        raise RuntimeError(f"{_JVP}: Expected primals to contain at least one Tensor.")


def jvp(func: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """``func``'s output and the product of its Jacobian with ``tangents``; ``strict`` refuses independent outputs."""
    _check_primals(primals, tangents)
    if forward_ad.entered():
        return _pushed_by_pulling(func, primals, tangents, has_aux)
    with forward_ad.dual_level():
        leaves, unflatten = flatten(primals)
        vectors, _ = flatten(tangents)
        duals = [forward_ad.make_dual(p, t) for p, t in zip(leaves, vectors, strict=True)]
        with _transforming(duals):
            output, aux = _with_aux(func(*unflatten(duals)), _JVP, has_aux)
        _all_tensors(output, _JVP)
        outputs, rebuild = flatten(output)
        parts = [forward_ad.unpack_dual(one) for one in outputs]
    if strict and any(part.tangent is None for part in parts):
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed "
            "with strict=True."
        )
    values = rebuild([part.primal for part in parts])
    pushed = rebuild([zeros_like(p.primal) if p.tangent is None else p.tangent for p in parts])
    return (values, pushed, aux) if has_aux else (values, pushed)


def _pushed_by_pulling(func: Function, primals: Any, tangents: Any, has_aux: bool) -> Any:
    """The same inside another ``jvp``: what pulls back is linear in what it is given, and is pulled back itself."""
    with enable_grad():
        points, trees = _points(primals)
        with _transforming(points):
            output, aux = _with_aux(func(*trees), _JVP, has_aux)
        outputs, rebuild = flatten(output)
        starts = [leaf_at(zeros_like(one)) for one in outputs]
        first = api.grad(outputs, points, starts, create_graph=True, allow_unused=True)
        pairs = [(g, v) for g, v in zip(first, flatten(tangents)[0], strict=True) if g is not None]
        found = api.grad([g for g, _ in pairs], starts, [v for _, v in pairs], create_graph=True, allow_unused=True)
    tangent = [zeros_like(one) if g is None else g for one, g in zip(outputs, found, strict=True)]
    value, pushed = (rebuild(_settled(each, points)) for each in (outputs, tangent))
    return (value, pushed, aux) if has_aux else (value, pushed)


def linearize(func: Function, *primals: Any) -> tuple[Any, Function]:
    """``func``'s output, and a function from tangents to the product of its Jacobian with them."""
    return func(*primals), lambda *tangents: jvp(func, primals, tangents)[1]


def jacfwd(func: Function, argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error") -> Function:
    """A function that computes the Jacobian of ``func``, column by column: one push of all basis tangents at once."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = _chosen(argnums, args)
        leaves, unflatten = flatten(args[numbers[0]] if isinstance(argnums, int) else tuple(args[n] for n in numbers))
        for leaf in leaves:
            if isinstance(leaf, Tensor) and leaf.dtype.category < FLOAT:
                raise ValueError(f"Expected primal to be floating point or complex, but got: {leaf.dtype}")

        def at(*flat: Any) -> Any:
            given, chosen = list(args), unflatten(list(flat))
            for number, tree in zip(numbers, (chosen,) if isinstance(argnums, int) else chosen, strict=True):
                given[number] = tree
            return func(*given, **kwargs)

        def push(*basis: Any) -> Any:
            output, tangents, *aux = jvp(at, tuple(leaves), basis, has_aux=has_aux)
            beside.append(aux)
            return tangents

        beside: list[Any] = []
        pushed = vmap(push, randomness=randomness)(*_basis(leaves))
        jacobian = tree_map(lambda columns: unflatten(_by_input(columns, leaves)), pushed)
        return (jacobian, beside[0][0]) if has_aux else jacobian

    return wrapper


def _basis(leaves: Sequence[Any]) -> list[Any]:
    """For each leaf its part of every unit tangent, one after another in the first dim."""
    sizes = [leaf.numel() for leaf in leaves]
    parts = []
    for number, leaf in enumerate(leaves):
        part = leaf.new_zeros((sum(sizes), sizes[number]))
        start = sum(sizes[:number])
        part.diagonal(-start).fill_(1)
        parts.append(part.view((sum(sizes), *leaf.shape)))
    return parts


def _by_input(columns: Any, leaves: Sequence[Any]) -> list[Any]:
    """The derivatives of one output by every leaf: its dims first, then the leaf's."""
    parts = columns.movedim(0, -1).split([leaf.numel() for leaf in leaves], -1)
    return [part.view((*columns.shape[1:], *leaf.shape)) for part, leaf in zip(parts, leaves, strict=True)]


def hessian(func: Function, argnums: Argnums = 0) -> Function:
    """A function that computes the Hessian of ``func``."""
    return jacfwd(jacrev(func, argnums), argnums)


# ---- modules ---------------------------------------------------------------------------------------------------------


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: Any = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other parameters and buffers than its own.

    Raises:
        ValueError: the dicts are no dicts, name something twice, or differ for tied weights.
        RuntimeError: ``strict``, and they name not all of the module's, or others.
    """
    dicts = parameter_and_buffer_dicts
    if not isinstance(dicts, (Mapping, list, tuple)) or not all(isinstance(d, Mapping) for d in _several(dicts)):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    names = [name for each in _several(dicts) for name in each]
    if repeated := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    merged = {name: value for each in _several(dicts) for name, value in each.items()}
    return called(module, merged, args, kwargs, tie_weights=tie_weights, strict=strict)


def _several(dicts: Any) -> Sequence[Any]:
    return (dicts,) if isinstance(dicts, Mapping) else dicts


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and buffers of several modules of one kind, stacked for ``vmap``."""
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    states = ([dict(m.named_parameters()) for m in models], [dict(m.named_buffers()) for m in models])
    parameters, buffers = ({name: _stack([s[name] for s in each], 0) for name in each[0]} for each in states)
    return {name: one.detach().requires_grad_() for name, one in parameters.items()}, buffers


def functionalize(func: Function, *, remove: str = "mutations") -> Function:
    """``func`` itself: writes in place are what they are here."""
    return func


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The tensor itself: transforms wrap nothing here."""
    return tensor


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Let every batch norm below ``root`` use the statistics of its batch, and keep none."""
    for module in root.modules():
        if getattr(module, "track_running_stats", False):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


for _function in (
    functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, stack_module_state, vjp, vmap
):  # fmt: skip
    _function.__module__ = "torch.func"

__all__ = [
    "debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
    "linearize", "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip
__getattr__ = missing_from("torch.func")
