"""Gradients on their way through the graph, in words."""

from __future__ import annotations

import dataclasses

import numpy as np

from stridescope.app.moment import Moment
from stridescope.app.origins import memory_of
from stridescope.app.text import tr
from stridescope.app.values import elements_of, shape_text
from stridescope.engine.events import StorageSummarised, StorageWritten, TensorMade
from stridescope.engine.recording.model import SentGradient
from stridescope.engine.recording.reader import Recording

LOOK_BACK = 150  # events: a gradient is sent soon after it was made


@dataclasses.dataclass(frozen=True)
class GradientFacts:
    """The shape of a gradient when it was sent, and its mean where the values are known."""

    sizes: tuple[int, ...]
    mean: float | None


def gradient_words(moment: Moment, sent: SentGradient) -> str:
    """Return ``grad 3×2  mean 0.167``."""
    memory, key = memory_of(moment.recording), ("gradient", sent.gradient, sent.step)
    if key not in memory:
        memory[key] = _facts(moment.recording, sent)
    facts: GradientFacts | None = memory[key]
    if facts is None:
        return tr("grad")
    words = tr("grad {shape}", shape=shape_text(facts.sizes))
    return words if facts.mean is None else f"{words}  " + tr("mean {mean}", mean=f"{facts.mean:.3g}")


def _facts(recording: Recording, sent: SentGradient) -> GradientFacts | None:
    """Look for the gradient's birth and its values among the events before it was sent."""
    events = recording.events(max(0, sent.step - LOOK_BACK), sent.step)
    made = next((e for e in reversed(events) if isinstance(e, TensorMade) and e.tensor == sent.gradient), None)
    if made is None:
        return None
    for event in reversed(events):
        if isinstance(event, StorageWritten) and event.storage == made.storage and event.first == 0:
            values = elements_of(event.values, made.dtype)
            known = values is not None and values.size > 0
            return GradientFacts(made.sizes, float(np.mean(values.astype(np.float64))) if known else None)  # type: ignore[union-attr]
        if isinstance(event, StorageSummarised) and event.storage == made.storage:
            return GradientFacts(made.sizes, event.mean)
    return GradientFacts(made.sizes, None)
