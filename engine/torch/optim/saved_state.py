"""How an optimizer's state becomes a ``state_dict`` and comes back: parameters are numbered in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from stridescope.engine.dtype import float32
from stridescope.engine.tensor import Tensor

Groups = list[dict[str, Any]]


def pack(groups: Groups, state: dict[Any, Any]) -> dict[str, Any]:
    """The dict that ``state_dict()`` returns."""
    numbers: dict[int, int] = {}
    packed_groups, start = [], 0
    for group in groups:
        for number, param in enumerate(group["params"], start):
            numbers.setdefault(id(param), number)
        packed = {key: value for key, value in group.items() if key != "params"}
        packed["params"] = [numbers[id(param)] for param in group["params"]]
        start += len(packed["params"])
        packed_groups.append(packed)
    packed_state = {numbers[id(key)] if isinstance(key, Tensor) else key: value for key, value in state.items()}
    return {"state": packed_state, "param_groups": packed_groups}


def unpack(groups: Groups, state_dict: dict[str, Any]) -> dict[str, Any]:
    """State and groups as attributes of the optimizer; raises ValueError when the groups don't match."""
    saved = deepcopy(state_dict["param_groups"])
    if len(groups) != len(saved):
        raise ValueError("loaded state dict has a different number of parameter groups")
    if any(len(ours["params"]) != len(theirs["params"]) for ours, theirs in zip(groups, saved, strict=True)):
        raise ValueError(
            "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
        )
    numbers = chain.from_iterable(group["params"] for group in saved)
    by_number = dict(zip(numbers, chain.from_iterable(group["params"] for group in groups), strict=True))
    state: defaultdict[Any, Any] = defaultdict(dict)
    for key, value in state_dict["state"].items():
        if key in by_number:
            on_device = any(_step_on_device(group) for group in saved if key in group["params"])
            state[by_number[key]] = _fitted(by_number[key], value, on_device)
        else:
            state[key] = value
    for ours, theirs in zip(groups, saved, strict=True):
        theirs["params"] = ours["params"]
        if "param_names" in ours:
            theirs.setdefault("param_names", ours["param_names"])
    return {"state": state, "param_groups": saved}


def _step_on_device(group: dict[str, Any]) -> bool:
    return bool(group.get("capturable") or group.get("fused"))


def _fitted(param: Tensor, value: Any, on_device: bool, key: Any = None) -> Any:
    """A copy of a piece of state with its tensors in the parameter's dtype and on its device."""
    if isinstance(value, Tensor):
        if key == "step":
            return value.to(dtype=float32, device=param.device) if on_device else value
        return value.to(dtype=param.dtype if param.is_floating_point() else value.dtype, device=param.device)
    if isinstance(value, dict):
        return {name: _fitted(param, item, on_device, name) for name, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return type(value)(_fitted(param, item, on_device) for item in value)  # type: ignore[call-arg]
    return value
