"""Modules as data: the parameters and buffers inside each, by the names that lead to them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from stridescope.app.moment import Moment
from stridescope.app.selection import tensor_name
from stridescope.app.text import plural, tr
from stridescope.app.values import shape_text, short_dtype
from stridescope.engine.recording.model import Frame, State, TensorState
from stridescope.engine.worker.protocol import PARTS_RECORDED

COLUMNS = ("name", "shape", "dtype", "device", "learns", ".grad", "ver")


@dataclasses.dataclass(frozen=True)
class ModuleRow:
    """A tensor inside a module, or (``tensor`` 0) the title of a module or a remark under it."""

    tensor: int
    storage: int
    cells: tuple[str, ...]
    depth: int = 0


def rows(moment: Moment) -> list[ModuleRow]:
    """Return the modules that the frames name, outermost frame first, each once: by other names they are the same."""
    found: list[ModuleRow] = []
    seen: set[int] = set()
    for frame in moment.state.frames:
        for root in [name for name in frame.names if "." not in name and "[" not in name]:
            inside = _inside(moment.state, frame, root)
            if inside and not seen.issuperset(tensor.id for _, tensor in inside):
                seen.update(tensor.id for _, tensor in inside)
                found += _module(moment.state, frame, root, inside)
    return found


def headline(moment: Moment) -> str:
    """Return how many tensors learn, and how many elements they have."""
    state = moment.state
    ids = {row.tensor for row in rows(moment) if row.tensor}
    learning = [state.tensors[id] for id in ids if state.tensors[id].requires_grad]
    if not learning:
        return ""
    elements = sum(math.prod(tensor.sizes) for tensor in learning)
    return plural(len(learning), "{n} parameter", "{n} parameters") + " · " + tr("{n} elements", n=f"{elements:,}")


def _inside(state: State, frame: Frame, root: str) -> list[tuple[str, TensorState]]:
    """Return the tensors that a name leads to by attributes, as those of a Module do."""
    prefix = f"{root}."
    named = [(key.removeprefix(prefix), frame.names[key].tensor) for key in frame.names if key.startswith(prefix)]
    return [(path, state.tensors[tensor]) for path, tensor in named if tensor in state.tensors]


def _module(state: State, frame: Frame, root: str, inside: list[tuple[str, TensorState]]) -> Iterator[ModuleRow]:
    kind = frame.names[root].text.partition("\n")[0].rstrip("(").strip()
    yield ModuleRow(0, 0, (f"{root} · {kind}", *[""] * 6))
    for path, tensor in inside:
        yield ModuleRow(tensor.id, tensor.storage, _cells(state, path, tensor), 1)
    if len(inside) >= PARTS_RECORDED:
        words = tr("only the first {n} tensors inside are recorded", n=PARTS_RECORDED)
        yield ModuleRow(0, 0, (f"… {words}", *[""] * 6), 1)


def _cells(state: State, path: str, tensor: TensorState) -> tuple[str, ...]:
    storage = state.storages.get(tensor.storage)
    grad = (
        tensor_name(state, tensor.grad) if tensor.grad in state.tensors else tr("none") if tensor.requires_grad else "—"
    )
    return (
        path,
        shape_text(tensor.sizes),
        short_dtype(tensor.dtype),
        storage.device if storage else "—",
        tr("yes") if tensor.requires_grad else tr("no"),
        grad,
        str(tensor.version),
    )
