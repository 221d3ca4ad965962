"""What the graph keeps for backward, as data: one row per saved tensor."""

from __future__ import annotations

import dataclasses

from stridescope.app.moment import Moment
from stridescope.app.selection import tensor_name, views_of
from stridescope.app.text import plural, tr
from stridescope.app.values import size_text
from stridescope.engine.recording.model import NodeState, Saved, State

COLUMNS = ("node", "keeps", "tensor", "version", "now", "size")


@dataclasses.dataclass(frozen=True)
class SavedRow:
    """A saved tensor; ``stale`` when a write in place made backward refuse it, ``freed`` when it was let go."""

    node: int
    tensor: int
    storage: int
    cells: tuple[str, ...]
    stale: bool
    freed: bool


def rows(moment: Moment) -> list[SavedRow]:
    """Return what all nodes keep, the newest node first."""
    state = moment.state
    return [_row(state, node, saved) for node in reversed(state.nodes.values()) for saved in node.saved]


def headline(moment: Moment) -> str:
    """Return how much is kept, each storage counted once, and how many would be refused."""
    found = rows(moment)
    kept = {row.storage for row in found if not row.freed}
    size = sum(moment.state.storages[storage].nbytes for storage in kept if storage in moment.state.storages)
    stale = sum(row.stale for row in found)
    words = tr("{size} kept", size=size_text(size))
    return f"{words} · " + plural(stale, "{n} overwritten", "{n} overwritten") if stale else words


def _row(state: State, node: NodeState, saved: Saved) -> SavedRow:
    now = _version_now(state, saved)
    stale = not node.freed and now is not None and now != saved.version
    known = saved.tensor in state.tensors
    cells = (
        node.name,
        saved.field,
        tensor_name(state, saved.tensor) if known else "—",
        str(saved.version),
        tr("freed") if node.freed else "—" if now is None else f"{now} ✗" if stale else str(now),
        size_text(saved.nbytes),
    )
    return SavedRow(node.id, saved.tensor if known else 0, saved.storage, cells, stale, node.freed)


def _version_now(state: State, saved: Saved) -> int | None:
    """Return the version that the saved tensor has now, None where nobody shows it any more."""
    if saved.tensor in state.tensors:
        return state.tensors[saved.tensor].version
    views = views_of(state, saved.storage)
    return views[0].version if views else None
