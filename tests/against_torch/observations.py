"""What a random program observes of its tensors: values, layout, versions, history and gradients."""

from __future__ import annotations

import math
from typing import Any


def broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    if len(shape) > len(target):
        return False
    return all(a in (1, b) for a, b in zip(reversed(shape), reversed(target), strict=False))


def look(program: Any, tensor: Any, graph: bool) -> Any:
    """Everything one can see of a tensor."""
    seen: dict[str, Any] = {
        "shape": list(tensor.shape),
        "stride": strides(tensor),
        "offset": tensor.storage_offset(),
        "version": None if program.inferred else tensor._version,
        "requires_grad": tensor.requires_grad,
        "values": [plain(v) for v in flat(tensor.detach().tolist())],
        "shares": [n for n, t in program.tensors.items() if shares(t, tensor)],
        "base": None if program.inferred else base_of(program, tensor),
    }
    if graph:
        seen |= graph_of(tensor)
    return seen


def strides(tensor: Any) -> list[int | None]:
    """The strides that matter: those of dims with more than one element."""
    return [stride if size > 1 else None for size, stride in zip(tensor.shape, tensor.stride(), strict=True)]


def base_of(program: Any, tensor: Any) -> Any:
    if tensor._base is None:
        return None
    return [name for name, t in program.tensors.items() if t is tensor._base] or "unnamed"


def shares(one: Any, other: Any) -> bool:
    return bool(one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr() and one.numel())


def graph_of(tensor: Any) -> dict[str, Any]:
    try:
        node = tensor.grad_fn
    except RuntimeError as error:
        return {"grad_fn": f"raised {str(error).splitlines()[0]}"}
    names = [] if node is None else [(None if n is None else n.name(), k) for n, k in node.next_functions]
    grad = tensor.grad if tensor.is_leaf or tensor.retains_grad else None
    return {
        "grad_fn": None if node is None else node.name(),
        "next": names,
        "leaf": tensor.is_leaf,
        "grad": None if grad is None else grad_of(grad),
    }


def grad_of(grad: Any) -> Any:
    node = grad.grad_fn
    values = [plain(v) for v in flat(grad.detach().tolist())]
    return [list(grad.shape), strides(grad), grad._version, node and node.name(), values]


def flat(values: Any) -> list[Any]:
    return [v for item in values for v in flat(item)] if isinstance(values, list) else [values]


def plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return float(f"{value:.9g}") if isinstance(value, float) else value
