"""What every panel is a function of: a recording, the state at the view cursor, and the selection."""

from __future__ import annotations

import dataclasses

from stridescope.app.cursor import Cursor
from stridescope.app.selection import Selection, follow, linked
from stridescope.engine.recording.model import State
from stridescope.engine.recording.reader import Recording


@dataclasses.dataclass(frozen=True)
class Moment:
    """One look at one recording. ``selection`` is linked: hovered, else pinned, else what the step is about."""

    recording: Recording
    state: State
    head: int
    selection: Selection
    hovering: bool = False

    @property
    def step(self) -> int:
        """The step we look at."""
        return self.state.step


def moment_at(recording: Recording, cursor: Cursor, step: int | None = None) -> Moment:
    """Return the moment that ``cursor`` looks at, or one on the way there."""
    state = recording.state(cursor.view if step is None else step)
    selection = linked(state, cursor.hovered or cursor.selection) or follow(state)
    return Moment(recording, state, cursor.head, selection, bool(cursor.hovered))
