"""Telling the recording of modules: what each is, what it is made of, whether it trains, and when its forward runs.

Modules are plain objects whose ``__dict__`` belongs to the script, so what was told of each is kept beside them. A
module is compared with what was told when one of its own methods changes it and when its forward begins: that finds
what was written into its registries directly. Nothing is kept while nothing records.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any

from stridescope.engine.announce import tensor_id
from stridescope.engine.events import (
    BufferSet,
    ChildSet,
    ForwardBegan,
    ForwardEnded,
    ModeSet,
    ModuleBecame,
    ModuleFreed,
    ModuleMade,
    ParameterSet,
    PartRemoved,
    Wire,
    journal,
)
from stridescope.engine.torch.nn.uninitialized import UninitializedTensorMixin

Part = tuple[int, int]  # the wire code of the event that tells of it, and the number of the tensor or module

_BEGAN, _ENDED, _CHILD = ForwardBegan.code, ForwardEnded.code, ChildSet.code
_TENSORS = (("_parameters", ParameterSet.code), ("_buffers", BufferSet.code))
_next_number = itertools.count(1).__next__


class Told(weakref.ref[Any]):
    """What was last told of a module."""

    __slots__ = ("key", "kind", "number", "parts", "training")

    key: int
    kind: type
    number: int
    parts: dict[str, Part]
    training: bool


_told: dict[int, Told] = {}  # by the id() of the module


def module_number(module: Any) -> int:
    """The module's number in events; it is told to the recording when it has none yet. 0 where nothing records."""
    told = _told.get(id(module))
    return told.number if told is not None else look(module)


def look(module: Any) -> int:
    """Tell what has changed of a module since it was told last, and return its number; 0 where nothing records."""
    if (emit := journal.emit) is None:
        return 0
    told = _told.get(id(module)) or _met(module, emit)
    state = module.__dict__
    if (parts := _parts(state)) != told.parts:
        _tell_parts(told, parts, emit)
    training = bool(state.get("training", True))
    if training is not told.training:
        told.training = training
        emit((ModeSet.code, told.number, training))
    if type(module) is not told.kind:  # a lazy one becomes another when its shapes are known
        told.kind = type(module)
        emit((ModuleBecame.code, told.number, told.kind.__name__))
    return told.number


def look_at_part(module: Any, name: str) -> None:
    """Tell of one name among a module's parts, if it has changed: a list of many parts grows one by one."""
    if (emit := journal.emit) is None:
        return
    told = _told.get(id(module)) or _met(module, emit)
    before, part = told.parts.get(name), _part(module.__dict__, name)
    if part is None:
        if told.parts.pop(name, None) is not None:
            emit((PartRemoved.code, told.number, name))
    elif part != before:
        told.parts[name] = part
        emit((part[0], told.number, name, part[1]))


def told_call(module: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return ``run(module, args, kwargs)``, told as a run of the module's forward."""
    number = look(module)
    _emit((_BEGAN, number))
    try:
        return run(module, args, kwargs)
    finally:
        _emit((_ENDED, number))


def _met(module: Any, emit: Callable[[Wire], Any]) -> Told:
    told = Told(module, _gone)
    told.key, told.kind, told.number = id(module), type(module), _next_number()
    told.parts, told.training = {}, True
    _told[told.key] = told
    emit((ModuleMade.code, told.number, told.kind.__name__))
    return told


def _gone(told: Told) -> None:
    if _told.get(told.key) is told:
        del _told[told.key]
    _emit((ModuleFreed.code, told.number))


def _emit(wire: Wire) -> None:
    if (emit := journal.emit) is not None:
        emit(wire)


def _parts(state: dict[str, Any]) -> dict[str, Part]:
    """Return the parts by name; an entry that is None, or a parameter of no shape yet, is no part."""
    found: dict[str, Part] = {}
    for registry, code in _TENSORS:
        for name, tensor in state.get(registry, {}).items():
            if tensor is not None and (number := tensor._id or _number(tensor)):
                found[name] = code, number
    for name, child in state.get("_modules", {}).items():
        if child is not None:
            found[name] = _CHILD, module_number(child)
    return found


def _number(tensor: Any) -> int:
    return 0 if isinstance(tensor, UninitializedTensorMixin) else tensor_id(tensor)


def _part(state: dict[str, Any], name: str) -> Part | None:
    for registry, code in _TENSORS:
        if (tensor := state.get(registry, {}).get(name)) is not None and (number := _number(tensor)):
            return code, number
    child = state.get("_modules", {}).get(name)
    return None if child is None else (_CHILD, module_number(child))


def _tell_parts(told: Told, parts: dict[str, Part], emit: Callable[[Wire], Any]) -> None:
    before, told.parts = told.parts, parts
    for name in before.keys() - parts.keys():
        emit((PartRemoved.code, told.number, name))
    for name, (code, number) in parts.items():
        if before.get(name) != (code, number):
            emit((code, told.number, name, number))
