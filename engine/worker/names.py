"""Which names each line of a code object changes, and what a name stands for.

The plan of a code object is made once from its bytecode. When the next line is reached, only the names that the
last line stored are looked up; names that it merely read are looked at again when they stand for something that can
change in place, and only as long as that costs little.
"""

from __future__ import annotations

import dis
import itertools
import types
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from stridescope.engine.worker.protocol import PARTS_RECORDED
from stridescope.engine.worker.text import module_of, short_text, tensor_of

ATOMS = frozenset({int, float, complex, bool, str, bytes, type(None), range, types.ModuleType, types.FunctionType})
LASTING = frozenset({type, types.BuiltinFunctionType, types.MethodType, tuple, frozenset})  # their text never changes

_STORES = ("STORE_FAST", "STORE_NAME", "STORE_DEREF", "DELETE_FAST", "DELETE_NAME", "DELETE_DEREF")
_GLOBAL_STORES = ("STORE_GLOBAL", "DELETE_GLOBAL")
_LOADS = ("LOAD_FAST", "LOAD_NAME", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_CLASSDEREF")


class Names(NamedTuple):
    """What one line does to names: those it stores or deletes, those of the module, and those it reads.

    ``places`` are the slots of those it stores, where each of them has one that can be read in place.
    """

    stored: tuple[str, ...]
    module: tuple[str, ...]
    read: tuple[str, ...]
    places: tuple[int, ...] = ()

    def placed(self, places: Mapping[str, int]) -> Names:
        """Return the same with the places, given those of all names that have one."""
        known = all(name in places for name in self.stored)
        return self._replace(places=tuple(places[name] for name in self.stored)) if known else self


# What a name stands for: a tensor (its id) or a value (its text), and the tensors found inside with their paths. A
# plain tuple, since one is made for every name that a line binds. Modules tell of their own parts: a module among the
# tensors, or the value itself (with an empty path), is the negative of its number.
Parts = tuple[tuple[str, int], ...]
Bound = tuple[int, str, Parts]


def plan(code: types.CodeType) -> dict[int, Names]:
    """Return, for each line of the code, the names that it touches."""
    touched: dict[int, tuple[dict[str, None], dict[str, None], dict[str, None]]] = {}
    for instruction in dis.get_instructions(_without_jumps(code)):
        line = instruction.positions.lineno if instruction.positions else None
        if line is not None:
            _note(instruction, touched.setdefault(line, ({}, {}, {})))
    for stored, _, read in touched.values():
        for name in stored:
            read.pop(name, None)
    return {
        line: Names(tuple(stored), tuple(module), tuple(read))
        for line, (stored, module, read) in touched.items()
        if stored or module or read
    }


def _without_jumps(code: types.CodeType) -> types.CodeType:
    """Return code with the same names on the same lines: dis looks up each instruction in its list of jump targets."""
    jumps, instructions = frozenset(dis.hasjrel + dis.hasjabs), bytearray(code.co_code)
    for at in range(0, len(instructions), 2):
        if instructions[at] in jumps:
            instructions[at] = dis.opmap["NOP"]
    return code.replace(co_code=bytes(instructions))


def _note(instruction: dis.Instruction, found: tuple[dict[str, None], dict[str, None], dict[str, None]]) -> None:
    """File the names of one instruction; Python 3.13 fuses two stores or a store and a load into one."""
    opname, value = instruction.opname, instruction.argval
    names = [name for name in (value if isinstance(value, tuple) else (value,)) if isinstance(name, str)]
    if any(opname.startswith(prefix) for prefix in _STORES):
        found[0].update(dict.fromkeys(filter(worth_showing, names)))
    elif opname.startswith(_GLOBAL_STORES):
        found[1].update(dict.fromkeys(filter(worth_showing, names)))
    elif opname.startswith(_LOADS):
        found[2].update(dict.fromkeys(filter(worth_showing, names)))


def worth_showing(name: str) -> bool:
    """Say whether a name is one that the script's author wrote, not one of Python's own."""
    return not (name.startswith("__") and name.endswith("__")) and not name.startswith(".")


def look_at(value: object, deep: bool = True) -> Bound:
    """Say what a value is; containers and modules tell the tensors inside, where ``deep``, by the path to them."""
    if type(value) in ATOMS:
        return 0, short_text(value), ()
    if (tensor := tensor_of(value)) is not None:
        return _tensor_id(tensor), "", ()
    if not deep:
        return 0, short_text(value), ()
    try:
        found = itertools.islice(tensors_in(value), PARTS_RECORDED)
        parts = tuple((path, number) for path, inside in found if (number := _number(inside)))
        return 0, short_text(value), parts
    except Exception:  # a container changed by another thread while we read it, or a class with a strange __dict__
        return 0, f"<{type(value).__name__}>", ()


def can_change(value: object, bound: Bound) -> bool:
    """Say whether what a name stands for can change in place, so that its text or the tensors inside change."""
    return not bound[0] and type(value) not in LASTING and type(value) not in ATOMS


def _number(value: object) -> int:
    """A tensor's number, or the negative of a module's; 0 for a module where nothing records."""
    if module_of(value) is None:
        return _tensor_id(value)
    from stridescope.engine.torch.nn.modules.told import module_number  # loaded where there is a module

    return -module_number(value)


def _tensor_id(tensor: Any) -> int:
    number: int = tensor._id
    if not number:
        from stridescope.engine.announce import tensor_id  # loaded with the first tensor, not with the worker

        number = tensor_id(tensor)
    return number


def tensors_in(value: object, depth: int = 3, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield the tensors and modules inside a value with their paths, such as ``[0]``, ``['x']`` or ``.cache[0]``.

    A module is yielded itself, and of what is in it only what it holds beside its parameters, buffers and modules.
    """
    if module_of(value) is not None:
        yield path, value
    if not depth:
        return
    for step, inside in itertools.islice(_inside(value), 2 * PARTS_RECORDED):
        if tensor_of(inside) is not None:
            yield path + step, inside
        elif type(inside) not in ATOMS:
            yield from tensors_in(inside, depth - 1, path + step)


def _inside(value: Any) -> Iterator[tuple[str, object]]:
    """Yield what a container or an object of the script holds, with the step that leads there."""
    kind = type(value)
    # The builtin's own methods: those of a derived class are the script's code.
    if issubclass(kind, list):
        yield from ((f"[{number}]", item) for number, item in enumerate(list.__iter__(value)))
    elif issubclass(kind, tuple):
        yield from ((f"[{number}]", item) for number, item in enumerate(tuple.__iter__(value)))
    elif issubclass(kind, dict):
        yield from ((f"[{key!r}]", item) for key, item in dict.items(value) if type(key) in ATOMS)
    elif not issubclass(kind, type) and kind.__dictoffset__:
        attributes = object.__getattribute__(value, "__dict__")
        yield from ((f".{name}", item) for name, item in attributes.items() if not name.startswith("_"))
