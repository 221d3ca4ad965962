"""``torch.func``: functions of functions, built on ``torch.autograd.grad``.

``vmap`` calls the function once per example and stacks the results: the same values, not the speed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stridescope.engine.autograd import api
from stridescope.engine.autograd.blank import zeros_like
from stridescope.engine.autograd.modes import enable_grad
from stridescope.engine.autograd.node import AccumulateGrad, Node
from stridescope.engine.autograd.task import children_first
from stridescope.engine.ops import FUNCTIONS
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.autograd import forward_ad

Function = Callable[..., Any]
Argnums = int | tuple[int, ...]


# ---- nested tuples, lists and dicts of tensors -----------------------------------------------------------------------


def flatten(tree: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """The leaves of nested tuples, lists and dicts, and a function that puts leaves into the same places."""
    if isinstance(tree, Mapping):
        kind: Any = type(tree)
        keys, children = list(tree), list(tree.values())
        return _flatten_many(children, lambda parts: kind(zip(keys, parts, strict=True)))
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        named: Any = type(tree)
        return _flatten_many(tree, lambda parts: named(*parts))
    if isinstance(tree, (tuple, list)):
        return _flatten_many(tree, type(tree))
    return [tree], lambda leaves: leaves[0]


def _flatten_many(
    children: Sequence[Any], rebuild: Callable[[list[Any]], Any]
) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    flat = [flatten(child) for child in children]
    leaves = [leaf for part, _ in flat for leaf in part]

    def unflatten(values: Sequence[Any]) -> Any:
        parts, start = [], 0
        for part, inner in flat:
            parts.append(inner(values[start : start + len(part)]))
            start += len(part)
        return rebuild(parts)

    return leaves, unflatten


def tree_map(function: Callable[[Any], Any], tree: Any) -> Any:
    """The same nest with ``function`` of each leaf."""
    leaves, unflatten = flatten(tree)
    return unflatten([function(leaf) for leaf in leaves])


# ---- reverse mode ----------------------------------------------------------------------------------------------------


def _points(trees: Sequence[Any]) -> tuple[list[Tensor], list[Any]]:
    """Fresh points to differentiate at, as leaves and in their nests."""
    points: list[Tensor] = []

    def point(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        fresh = leaf.view_as(leaf) if leaf._requires_grad else leaf.detach().requires_grad_()
        points.append(fresh)
        return fresh

    return points, [tree_map(point, tree) for tree in trees]


def _chosen(argnums: Argnums, args: Sequence[Any]) -> tuple[int, ...]:
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    for number in numbers:
        if not -len(args) <= number < len(args):
            raise RuntimeError(f"Got argnum={number}, but only {len(args)} positional inputs")
    return tuple(number % len(args) for number in numbers)


def _settled(results: Sequence[Tensor], points: Sequence[Tensor]) -> list[Tensor]:
    """Without history where it leads only to the points themselves, as the outermost transform gives them."""
    own = {id(point) for point in points}
    return [one if _leads_elsewhere(one, own) else one.detach() for one in results]


def _leads_elsewhere(tensor: Tensor, own: set[int]) -> bool:
    node = tensor._node
    if node is None:
        return tensor._requires_grad and id(tensor) not in own
    nodes: list[Node] = children_first([node])
    return any(isinstance(each, AccumulateGrad) and id(each.variable) not in own for each in nodes)


def _call_at(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], numbers: tuple[int, ...]) -> Any:
    points, trees = _points([args[number] for number in numbers])
    given = list(args)
    for number, tree in zip(numbers, trees, strict=True):
        given[number] = tree
    return points, trees, func(*given, **kwargs)


def grad_and_value(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that computes the gradient of ``func`` (which gives a scalar) and its value."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with enable_grad():
            numbers = _chosen(argnums, args)
            points, trees, output = _call_at(func, args, kwargs, numbers)
            output, aux = output if has_aux else (output, None)
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
        raise RuntimeError(
            "grad_and_value(f)(*args): Expected f(*args) to return a single tensor, got unsupported type "
            f"{type(output).__name__}."
        )
    if output.dim() != 0:
        raise RuntimeError(
            "grad_and_value(f)(*args): Expected f(*args) to return a scalar tensor, got tensor with "
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
        output = func(*trees)
        output, aux = output if has_aux else (output, None)
    outputs, unflatten = flatten(output)

    def pull(*cotangents: Any, retain_graph: bool = True, create_graph: bool = True) -> Any:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        vectors, _ = flatten(given)
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


def jacrev(func: Function, argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: Any = None) -> Function:
    """A function that computes the Jacobian of ``func``, one row after another."""

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
        rows = [_rows(made[1], outputs, position) for position in range(len(outputs))]
        shaped = [row[0] if isinstance(argnums, int) else row for row in rows]
        return (unflatten(shaped), made[2]) if has_aux else unflatten(shaped)

    return wrapper


def _rows(pull: Function, outputs: list[Tensor], position: int) -> Any:
    """The Jacobian of one output with respect to each chosen argument."""
    output, found = outputs[position], []
    for element in range(output.numel()):
        vectors = [zeros_like(one).contiguous() for one in outputs]
        vectors[position]._array.reshape(-1)[element] = 1
        found.append(pull(tuple(vectors) if len(vectors) > 1 else vectors[0]))
    columns = [flatten(row)[0] for row in found]
    _, unflatten = flatten(found[0])
    sizes = tuple(output.shape)
    return unflatten([_stack(list(c), 0).view((*sizes, *c[0].shape)) for c in zip(*columns, strict=True)])


def _stack(tensors: list[Any], dim: int) -> Any:
    return FUNCTIONS["torch"]["stack"](tensors, dim)


# ---- forward mode ----------------------------------------------------------------------------------------------------


def jvp(func: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """``func``'s output and the product of its Jacobian with ``tangents``."""
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise RuntimeError(f"jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it must be valid to call "
                           f"f(*primals), got {type(primals).__name__}")  # fmt: skip
    with forward_ad.dual_level():
        leaves, unflatten = flatten(primals)
        vectors, _ = flatten(tangents)
        duals = [forward_ad.make_dual(p, t) for p, t in zip(leaves, vectors, strict=True)]
        output = func(*unflatten(duals))
        output, aux = output if has_aux else (output, None)
        outputs, rebuild = flatten(output)
        parts = [forward_ad.unpack_dual(one) for one in outputs]
    values = rebuild([part.primal for part in parts])
    pushed = rebuild([zeros_like(p.primal) if p.tangent is None else p.tangent for p in parts])
    return (values, pushed, aux) if has_aux else (values, pushed)


def jacfwd(
    func: Function, argnums: Argnums = 0, has_aux: bool = False, *, chunk_size: Any = None, randomness: str = "error"
) -> Function:
    """A function that computes the Jacobian of ``func``; the same values as ``jacrev``."""
    return jacrev(func, argnums, has_aux=has_aux)


def hessian(func: Function, argnums: Argnums = 0) -> Function:
    """A function that computes the Hessian of ``func``."""
    return jacfwd(jacrev(func, argnums), argnums)


# ---- vmap ------------------------------------------------------------------------------------------------------------


def vmap(
    func: Function, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: Any = None
) -> Function:
    """A function that maps ``func`` over a dim of its arguments."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        leaves, unflatten = flatten(args)
        dims = _spread(in_dims, args)
        sizes = {leaf.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None}
        if not sizes:
            raise ValueError(
                f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>): at least one input must be mapped over"
            )
        if len(sizes) > 1:
            raise ValueError(
                f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sorted(sizes)} "
                "for the mapped dimension"
            )
        results = []
        for index in range(sizes.pop()):
            picked = [leaf if dim is None else leaf.select(dim, index) for leaf, dim in zip(leaves, dims, strict=True)]
            results.append(func(*unflatten(picked), **kwargs))
        return _joined(results, out_dims)

    return wrapper


def _name(func: Function) -> str:
    return getattr(func, "__name__", repr(func))


def _spread(dims: Any, tree: Any) -> list[int | None]:
    """A dim for every leaf of ``tree``: ``dims`` is a nest whose leaves may stand for whole branches."""
    if dims is None or isinstance(dims, int):
        return [dims if isinstance(leaf, Tensor) else None for leaf in flatten(tree)[0]]
    if isinstance(tree, Mapping):
        return [dim for key in tree for dim in _spread(dims[key], tree[key])]
    if not isinstance(tree, (tuple, list)) or len(dims) != len(tree):
        raise ValueError(f"vmap: in_dims is not compatible with the structure of inputs: {dims}")
    return [dim for part, inner in zip(dims, tree, strict=True) for dim in _spread(part, inner)]


def _joined(results: list[Any], out_dims: Any) -> Any:
    _, unflatten = flatten(results[0])
    columns = zip(*(flatten(result)[0] for result in results), strict=True)
    dims = _spread(out_dims, results[0])
    return unflatten([_stack(list(column), 0 if d is None else d) for column, d in zip(columns, dims, strict=True)])


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
    """Call a module with other parameters and buffers than its own."""
    dicts = parameter_and_buffer_dicts
    merged = dict(dicts) if isinstance(dicts, Mapping) else {k: v for each in dicts for k, v in each.items()}
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    before = {name: _swapped(module, name, value) for name, value in merged.items()}
    try:
        return module(*args, **(kwargs or {}))
    finally:
        for name, value in before.items():
            _swapped(module, name, value)


def _swapped(module: Any, name: str, value: Any) -> Any:
    """Put a tensor in place of the parameter or buffer of this name, and return what was there."""
    path, _, last = name.rpartition(".")
    owner = module.get_submodule(path) if path else module
    for store in (owner._parameters, owner._buffers):
        if last in store:
            store[last], before = value, store[last]
            return before
    raise KeyError(f"{name} is neither a parameter nor a buffer of {type(module).__name__}")


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and buffers of several modules of one kind, stacked for ``vmap``."""
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    states = ([dict(m.named_parameters()) for m in models], [dict(m.named_buffers()) for m in models])
    parameters, buffers = ({name: _stack([s[name] for s in each], 0) for name in each[0]} for each in states)
    return {name: one.detach().requires_grad_() for name, one in parameters.items()}, buffers


__all__ = [
    "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "stack_module_state", "vjp",
    "vmap",
]  # fmt: skip
