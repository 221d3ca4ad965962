"""``torch.export``: a module as a graph of aten ops, made by running it once with example inputs.

Branches on sizes keep the side that the example took, and sizes are checked when the program runs; branches on values
are refused. Sizes computed from the example are constants.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._not_yet import missing_from, refusal
from stridescope.engine.torch.export.dims import Dim, DimHint, dims, dynamic_of
from stridescope.engine.torch.export.program import (
    ExportedProgram,
    ExportGraphSignature,
    Guard,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    leaves,
)
from stridescope.engine.torch.export.recording import Recording
from stridescope.engine.torch.fx.node import map_aggregate
from stridescope.engine.torch.nn.modules.module import Module


def export(
    mod: Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *, dynamic_shapes: Any = None,
    strict: bool = False, preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:  # fmt: skip
    """The module as a program of aten ops.

    Raises:
        ValueError: ``mod`` is no module.
        GuardOnDataDependentSymNode: the program asks a tensor for its elements.
    """
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise TypeError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    bound = inspect.signature(mod.forward).bind(*args, **(kwargs or {}))
    given = _flat(bound)
    recording, specs = Recording(), _own_inputs(mod)
    for spec, tensor in specs:
        recording.input(spec.arg, tensor)
    user = [InputSpec(InputKind.USER_INPUT, _input(recording, name, value)) for name, value in given]
    copies = {id(value): value for _, value in given}
    with recording.underway():
        result = mod(*bound.args, **bound.kwargs)
    del copies
    outputs = [leaf for leaf in leaves(result) if isinstance(leaf, Tensor)]
    nodes = [recording.leaf(tensor) for tensor in outputs]
    recording.graph.output(tuple(nodes))
    constants = [
        InputSpec(InputKind.CONSTANT_TENSOR, name, name.removeprefix("c_")) for name in reversed(recording.constants)
    ]
    signature = ExportGraphSignature(
        [*constants, *(spec for spec, _ in specs), *user],
        [OutputSpec(OutputKind.USER_OUTPUT, node.name) for node in nodes],
    )
    held = {name.removeprefix("c_"): tensor for name, tensor in recording.constants.items()}
    guards = _guards([(s.arg, value) for s, (_, value) in zip(user, given, strict=True)], bound, dynamic_shapes)
    return ExportedProgram(mod, recording.graph, signature, held, guards, _form(result), list(bound.arguments))


def _own_inputs(mod: Module) -> list[tuple[InputSpec, Any]]:
    """The module's parameters and buffers, as inputs of the graph."""
    kept = set(mod.state_dict())
    found: list[tuple[InputSpec, Any]] = []
    for name, parameter in mod.named_parameters():
        found.append((InputSpec(InputKind.PARAMETER, f"p_{name.replace('.', '_')}", name), parameter))
    for name, buffer in mod.named_buffers():
        found.append((InputSpec(InputKind.BUFFER, f"b_{name.replace('.', '_')}", name, name in kept), buffer))
    return found


def _input(recording: Recording, name: str, value: Any) -> str:
    return recording.input(name, value).name


def _flat(bound: inspect.BoundArguments) -> list[tuple[str, Any]]:
    """The inputs with the names of their nodes; those inside of containers are numbered."""
    found: list[tuple[str, Any]] = []
    for name, value in bound.arguments.items():
        inner = leaves(value)
        if isinstance(value, dict):
            found += [(f"{name}_{key}", item) for key, item in value.items()]
        elif isinstance(value, (tuple, list)):
            found += [(f"{name}_{place}", item) for place, item in enumerate(inner)]
        else:
            found.append((name, value))
    return found


def _guards(given: list[tuple[str, Any]], bound: inspect.BoundArguments, shapes: Any) -> list[Guard]:
    names = list(bound.arguments)
    by_name = shapes if isinstance(shapes, dict) else dict(zip(names, shapes or (), strict=False))
    found = []
    for name, value in given:
        if isinstance(value, Tensor):
            found.append(Guard(name, tuple(value.shape), dynamic_of(by_name.get(name))))
    return found


def _form(result: Any) -> Callable[[Any], Any]:
    """From the graph's flat outputs back to what the module gave."""

    def form(flat: Any) -> Any:
        values = iter(flat)
        made = map_aggregate(result, lambda leaf: next(values) if isinstance(leaf, Tensor) else leaf)
        return _plain(made)

    return form


def _plain(value: Any) -> Any:
    """Lists and dicts that can be changed again."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return tuple(map(_plain, value)) if type(value) is tuple else value


def save(*args: Any, **kwargs: Any) -> None:
    """Saved programs are not here."""
    raise refusal("torch.export", "save")


def load(*args: Any, **kwargs: Any) -> None:
    """Saved programs are not here."""
    raise refusal("torch.export", "load")


__getattr__ = missing_from("torch.export", __name__)
__all__ = ["Dim", "DimHint", "ExportGraphSignature", "ExportedProgram", "dims", "export", "load", "save"]
