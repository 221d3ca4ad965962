"""Calling a module with other tensors in place of its parameters and buffers (``torch.func.functional_call``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stridescope.engine.tensor import Tensor


def called(module: Any, tensors: Mapping[str, Any], args: Any, kwargs: Any, *, tie_weights: bool, strict: bool) -> Any:
    """Call ``module`` with these tensors, by their names; names that the module has not are left alone.

    Raises:
        RuntimeError: ``strict``, and the names are not those of the module.
        TypeError: something given is no tensor.
        ValueError: ``tie_weights``, and weights that are one in the module were given different values.
    """
    own = _named(module)
    given = _tied(own, tensors) if tie_weights else dict(tensors)
    if strict:
        _check(module, own, given)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    before = {name: _swapped(module, name, value) for name, value in given.items() if name in own}
    try:
        return module(*args, **(kwargs or {}))
    finally:
        for name, value in before.items():
            _swapped(module, name, value)


def _named(module: Any) -> dict[str, Any]:
    """All tensors of a module by name; one that has several names is there several times."""
    return dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False))


def _tied(own: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, under every name of the tensor it stands for."""
    groups: dict[int, list[str]] = {}
    for name, tensor in own.items():
        groups.setdefault(id(tensor), []).append(name)
    result = dict(given)
    for names in groups.values():
        values = {id(given[name]): given[name] for name in names if name in given}
        if len(values) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(names)}, which are tied. Consider using "
                "tie_weights=False"
            )
        result |= {name: value for value in values.values() for name in names}
    return result


def _check(module: Any, own: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    said = []
    if unexpected := [name for name in given if name not in own]:
        said.append(f"Unexpected key(s): {', '.join(map(repr, sorted(unexpected)))}.")
    if missing := [name for name in own if name not in given]:
        said.append(f"Missing key(s): {', '.join(map(repr, sorted(missing)))}.")
    if said:
        lines = "\n\t".join(said)
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t{lines}")


def _swapped(module: Any, name: str, value: Any) -> Any:
    """Put a tensor in place of the parameter or buffer of this name, and return what was there."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{value} is not an instance of torch.Tensor")
    path, _, last = name.rpartition(".")
    owner = module.get_submodule(path) if path else module
    store = owner._parameters if last in owner._parameters else owner._buffers
    store[last], before = value, store[last]
    return before
