"""Modules as data: a tree of modules with the parameters and buffers of each, and whether it trains or runs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterator

from stridescope.app.moment import Moment
from stridescope.app.selection import tensor_name
from stridescope.app.text import plural, tr
from stridescope.app.values import shape_text, short_dtype
from stridescope.engine.recording.model import ModulePart, ModuleState, State, TensorState
from stridescope.engine.recording.module_tree import children, roots

COLUMNS = ("name", "shape", "dtype", "device", "learns", ".grad", "ver")
MOST_OPEN = 60  # rows: in a larger model the inner modules are closed at first


@dataclasses.dataclass(frozen=True)
class ModuleRow:
    """A tensor of a module, or (``module`` not 0) the title of a module, which may be open or not."""

    tensor: int
    storage: int
    cells: tuple[str, ...]
    depth: int = 0
    module: int = 0
    opened: bool | None = None


def rows(moment: Moment, turned: Collection[int] = ()) -> list[ModuleRow]:
    """Return the rows of the tree; ``turned`` are the modules that were opened or closed by hand."""
    state = moment.state
    tops = roots(state)
    tree = _Tree(state, _levels_open(state, tops), turned)
    return [row for module in tops for row in tree.module(module, module.path, 0, None)]


def _levels_open(state: State, level: list[ModuleState]) -> int:
    """Return how many levels of modules are open at first, given the outermost: as many as give few rows."""
    shown, levels, seen = len(level), 0, set[int]()
    while level:
        shown += sum(len(module.parts) for module in level)
        if levels and shown > MOST_OPEN:
            break
        levels += 1
        seen.update(module.id for module in level)
        level = [child for module in level for child in children(state, module) if child.id not in seen]
    return levels


def headline(moment: Moment) -> str:
    """Return how many tensors learn, and how many elements they have."""
    learning = [tensor for tensor in _tensors(moment.state).values() if tensor.requires_grad]
    if not learning:
        return ""
    elements = sum(math.prod(tensor.sizes) for tensor in learning)
    return plural(len(learning), "{n} parameter", "{n} parameters") + " · " + tr("{n} elements", n=f"{elements:,}")


def _tensors(state: State) -> dict[int, TensorState]:
    """Return the parameters of all modules that a variable leads to, each once."""
    parts = (part for module in state.modules.values() if module.path for part in module.parts.values())
    return {part.id: state.tensors[part.id] for part in parts if part.role == "parameter" and part.id in state.tensors}


class _Tree:
    """Lays out the rows of one tree; a module that is inside itself is shown once on each way down."""

    def __init__(self, state: State, levels: int, turned: Collection[int]) -> None:
        self._state, self._levels, self._turned = state, levels, turned
        self._above: list[int] = []

    def module(self, module: ModuleState, name: str, depth: int, above: bool | None) -> Iterator[ModuleRow]:
        """Yield a module's title and, where it is open, its parts; ``above`` is whether the module around it trains."""
        opened = None if not module.parts else (depth < self._levels) is (module.id not in self._turned)
        words = [name, module.kind, *self._condition(module, above)]
        yield ModuleRow(0, 0, (" · ".join(words), *[""] * 6), depth, module.id, opened)
        if not opened or module.id in self._above:
            return
        self._above.append(module.id)
        for part in module.parts.values():
            yield from self._part(module, part, depth + 1)
        self._above.pop()

    def _part(self, module: ModuleState, part: ModulePart, depth: int) -> Iterator[ModuleRow]:
        if part.role == "module" and part.id in self._state.modules:
            yield from self.module(self._state.modules[part.id], part.name, depth, module.training)
        elif part.role != "module" and (tensor := self._state.tensors.get(part.id)) is not None:
            yield ModuleRow(tensor.id, tensor.storage, _cells(self._state, part, tensor), depth)

    def _condition(self, module: ModuleState, above: bool | None) -> Iterator[str]:
        if module.training is not above:  # said where it differs: a layer kept in eval in a model that trains
            yield tr("training") if module.training else tr("eval")
        if module.id in self._state.forwards:
            yield tr("forward runs")


def _cells(state: State, part: ModulePart, tensor: TensorState) -> tuple[str, ...]:
    storage = state.storages.get(tensor.storage)
    grad = (
        tensor_name(state, tensor.grad) if tensor.grad in state.tensors else tr("none") if tensor.requires_grad else "—"
    )
    learns = tr("buffer") if part.role == "buffer" else tr("yes") if tensor.requires_grad else tr("no")
    return (
        part.name,
        shape_text(tensor.sizes),
        short_dtype(tensor.dtype),
        storage.device if storage else "—",
        learns,
        grad,
        str(tensor.version),
    )
