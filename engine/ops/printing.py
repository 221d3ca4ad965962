"""How tensors print: the text of ``print(tensor)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stridescope.engine.autograd.modes import ForwardMode, transforms
from stridescope.engine.device import META
from stridescope.engine.dispatch.launches import read_back
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import bool_, default_float, int64
from stridescope.engine.printed import numbers, options
from stridescope.engine.tensor import Tensor


def contents(tensor: Tensor, indent: int) -> str:
    """The bracketed numbers of a tensor, continued lines indented by ``indent``."""
    return numbers(resolved(tensor), indent)


def _dtype_shown(tensor: Tensor) -> bool:
    if tensor.device.type == "meta" or not tensor._array.size:
        return tensor.dtype is not default_float()
    return tensor.dtype not in (default_float(), default_float().to_complex(), int64, bool_)


def _suffixes(tensor: Tensor) -> list[str]:
    found = []
    if tensor.device.type != "cpu":
        found.append(f"device='{tensor.device}'")
    sized = tensor.device.type == "meta" or (not tensor._array.size and tensor._array.ndim != 1)
    if sized or (tensor._array.size and not options.edgeitems):
        found.append(f"size={tuple(tensor._array.shape)}")
    if _dtype_shown(tensor):
        found.append(f"dtype={tensor.dtype}")
    return found + _history(tensor) + _tangent(tensor)


def _history(tensor: Tensor) -> list[str]:
    try:
        node = tensor.grad_fn
    except RuntimeError:  # a view that was written where autograd could not follow has no grad_fn to show
        return ["grad_fn=<Invalid>"]
    if node is not None:
        name = type(node).__name__
        return [f"grad_fn=<{node.name().rsplit('::', 1)[-1] if name == 'CppFunction' else name}>"]
    return ["requires_grad=True"] if tensor._requires_grad else []


def _tangent(tensor: Tensor) -> list[str]:
    """The tangent of a dual tensor, while its level is entered."""
    if ForwardMode.custom is None:
        return []
    found = tensor.__dict__.get("_tangents", {}).get(ForwardMode.serial)
    return [] if found is None else [f"tangent={found}"]


def _joined(body: str, suffixes: list[str], indent: int) -> str:
    length = len(body) - body.rfind("\n") + 1
    for suffix in suffixes:
        if length + len(suffix) + 2 > options.linewidth:
            body += ",\n" + " " * indent + suffix
            length = indent + len(suffix)
        else:
            body += f", {suffix}"
            length += len(suffix) + 2
    return f"{body})"


# How tensors are printed that depend on a transform of torch.func at work; None for all others.
transformed_text: list[Callable[[Tensor], str | None]] = []


def text(self: Tensor, *, tensor_contents: str | None = None) -> str:
    """The printed form; ``tensor_contents`` replaces the numbers."""
    if transforms and tensor_contents is None:
        for transformed in transformed_text:
            if (said := transformed(self)) is not None:
                return said
    plain = type(self).__module__.startswith(("torch", "stridescope.")) and type(self).__name__ in (
        "Tensor",
        "Parameter",
    )
    prefix = "tensor(" if plain else f"{type(self).__name__}("
    body = tensor_contents
    if body is None:
        read_back(self)
        body = "..." if self.device.type == "meta" else contents(self, len(prefix))
    shown = _joined(prefix + body, _suffixes(self), len(prefix))
    return f"Parameter({shown})" if not plain and _is_parameter(self) else shown


def _is_parameter(tensor: Tensor) -> bool:
    """Whether this is one of nn.Parameter, which is declared above this room, or of a subclass."""
    kinds = type(tensor).__mro__
    return getattr(tensor, "_is_param", False) or any(
        kind.__name__ == "Parameter" and kind.__module__ == "torch.nn.parameter" for kind in kinds
    )


def formatted(self: Tensor, specification: str) -> str:
    """``format(tensor, …)``: a 0-d tensor formats as its number."""
    if self._array.ndim == 0 and type(self) is Tensor and self._device is not META:
        return format(self.item(), specification)
    return object.__format__(self, specification)


METHODS: dict[str, Any] = {"__repr__": text, "__format__": formatted}
