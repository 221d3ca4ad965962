"""Modules in the order in which people think of them: each variable's own, then what is inside."""

from __future__ import annotations

from collections.abc import Iterator

from stridescope.engine.recording.model import ModuleState, State


def roots(state: State) -> list[ModuleState]:
    """Return the modules that variables lead to and that are in no other such module, in the frames' order."""
    inside = {child.id for module in state.modules.values() if module.path for child in children(state, module)}
    found = [module for module in state.modules.values() if module.path and module.id not in inside]
    return sorted(found, key=lambda module: (module.frame, module.born))


def children(state: State, module: ModuleState) -> list[ModuleState]:
    """Return the live modules that are parts of a module."""
    return [state.modules[p.id] for p in module.parts.values() if p.role == "module" and p.id in state.modules]


def walk(state: State) -> Iterator[ModuleState]:
    """Yield every module that a variable leads to, each once, before what is inside it."""
    seen: set[int] = set()
    todo = [module for module in reversed(state.modules.values()) if module.path]  # at last those inside each other
    todo += reversed(roots(state))
    while todo:
        module = todo.pop()
        if module.id not in seen:
            seen.add(module.id)
            yield module
            todo += reversed(children(state, module))
