"""Which hooks ran, as data: one row per call, the newest first."""

from __future__ import annotations

import dataclasses
from operator import attrgetter

import numpy as np

from stridescope.app.moment import Moment
from stridescope.app.selection import tensor_name
from stridescope.app.text import plural, tr
from stridescope.engine.events import BackwardBegan, HookRan, NodeMade
from stridescope.engine.recording.reader import Recording

COLUMNS = ("step", "hook", "gradient", "on", "backward pass")
MOST = 200  # the newest calls of hooks; older ones are found by going back


@dataclasses.dataclass(frozen=True)
class HookRow:
    """A call of a hook: at which step, and the node and the tensor that it was about (0: none)."""

    step: int
    node: int
    tensor: int
    cells: tuple[str, ...]


def rows(moment: Moment) -> list[HookRow]:
    """Return the hooks that ran up to this moment, the newest first."""
    ran = moment.recording.steps_of(HookRan)
    ran = ran[: np.searchsorted(ran, moment.step, side="right")]
    return [_row(moment, step) for step in ran[::-1][:MOST].tolist()]


def headline(moment: Moment) -> str:
    """Return how often a hook ran up to this moment."""
    count = int(np.searchsorted(moment.recording.steps_of(HookRan), moment.step, side="right"))
    return plural(count, "{n} call of a hook", "{n} calls of hooks") if count else tr("no hook ran yet")


def _row(moment: Moment, step: int) -> HookRow:
    state, recording = moment.state, moment.recording
    kind, node, tensor = attrgetter("kind", "node", "tensor")(recording.event(step))
    alive = tensor in state.tensors
    gradient = tensor_name(state, tensor) if alive else f"#{tensor}" if tensor else "—"
    number = int(np.searchsorted(recording.steps_of(BackwardBegan), step))
    cells = (str(step + 1), kind, gradient, _node_name(moment, node), str(number or "—"))
    return HookRow(step, node if node in state.nodes else 0, tensor if alive else 0, cells)


def _node_name(moment: Moment, node: int) -> str:
    if node in moment.state.nodes:
        return moment.state.nodes[node].name
    return _former_name(moment.recording, node) if node else "—"


def _former_name(recording: Recording, node: int) -> str:
    """Return the name of a node that is gone, from the event that made it."""
    made = next((recording.event(step) for step in recording.history("node", node)), None)
    return made.name if isinstance(made, NodeMade) else f"#{node}"
