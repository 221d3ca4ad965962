"""How module events move the machine: what modules are made of, and the paths by which variables lead to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stridescope.engine.events import (
    BufferSet,
    ChildSet,
    Event,
    ForwardBegan,
    ForwardEnded,
    ModeSet,
    ModuleBecame,
    ModuleFreed,
    ModuleMade,
    ParameterSet,
    PartRemoved,
    Wire,
)
from stridescope.engine.recording.machine import Machine, add, take
from stridescope.engine.recording.model import ModulePart, ModuleState

DEEPEST = 100  # attributes in a path: modules that are inside each other have none that is longer

Found = tuple[int, int, str]  # the frame, how many attributes lead on from its variable, and the whole path
NOWHERE: Found = (0, 0, "")


def _module_made(machine: Machine, wire: Wire) -> None:
    _, module, kind = wire
    machine.modules.put(module, ModuleState(module, kind, True, machine.step, {}))


def _module_became(machine: Machine, wire: Wire) -> None:
    if (row := machine.modules.edit(wire[1])) is not None:
        row.kind = wire[2]


def _part_set(role: str) -> Callable[[Machine, Wire], None]:
    def fold(machine: Machine, wire: Wire) -> None:
        _, module, name, id = wire
        if (row := machine.modules.edit(module)) is None:
            return
        before = row.parts.get(name)
        row.parts[name] = part = ModulePart(name, role, id)
        if before is not None:
            _let_go(machine, module, before)
        add(machine.parents if role == "module" else machine.owners, id, (module, name))
        _renamed(machine, part)

    return fold


def _part_removed(machine: Machine, wire: Wire) -> None:
    _, module, name = wire
    row = machine.modules.edit(module)
    if row is not None and (part := row.parts.pop(name, None)) is not None:
        _let_go(machine, module, part)


def _let_go(machine: Machine, module: int, part: ModulePart) -> None:
    take(machine.parents if part.role == "module" else machine.owners, part.id, (module, part.name))
    _renamed(machine, part)


def _renamed(machine: Machine, part: ModulePart) -> None:
    if part.role == "module":
        find_path(machine, part.id)
    else:
        machine.rename(part.id)


def find_path(machine: Machine, module: int) -> None:
    """Find the path of a module anew, and with it those of all inside, as far as they change."""
    todo = [module]
    while todo:
        row = machine.modules.get(id := todo.pop())
        if row is None:
            continue
        best = min(_ways(machine, id), default=NOWHERE)
        if best == (row.frame, row.depth, row.path) or (row := machine.modules.edit(id)) is None:
            continue
        row.frame, row.depth, row.path = best
        todo += [part.id for part in row.parts.values() if part.role == "module"]
        for part in row.parts.values():
            if part.role != "module":
                machine.rename(part.id)


def _ways(machine: Machine, module: int) -> Iterator[Found]:
    """Yield the ways to a module: its own names, and a step on from the modules that it is in."""
    for frame, name in machine.modules_named.get(module, ()):
        yield frame, 0, name
    for parent, name in machine.parents.get(module, ()):
        above = machine.modules.get(parent)
        if above is not None and above.path and above.depth < DEEPEST:
            yield above.frame, above.depth + 1, f"{above.path}.{name}"


def _mode_set(machine: Machine, wire: Wire) -> None:
    if (row := machine.modules.edit(wire[1])) is not None:
        row.training = wire[2]


def _module_freed(machine: Machine, wire: Wire) -> None:
    if (row := machine.modules.pop(module := wire[1])) is None:
        return
    for part in row.parts.values():
        _let_go(machine, module, part)
    machine.modules_named.pop(module, None)


def _forward_began(machine: Machine, wire: Wire) -> None:
    machine.forwards = (*machine.forwards, wire[1])


def _forward_ended(machine: Machine, wire: Wire) -> None:
    running = machine.forwards
    if wire[1] in running:  # the innermost run of it, and what an exception in a thread may have left inside
        machine.forwards = running[: len(running) - 1 - running[::-1].index(wire[1])]


FOLDS: dict[type[Event], Callable[[Machine, Wire], None]] = {
    ModuleMade: _module_made,
    ModuleBecame: _module_became,
    ParameterSet: _part_set("parameter"),
    BufferSet: _part_set("buffer"),
    ChildSet: _part_set("module"),
    PartRemoved: _part_removed,
    ModeSet: _mode_set,
    ModuleFreed: _module_freed,
    ForwardBegan: _forward_began,
    ForwardEnded: _forward_ended,
}
