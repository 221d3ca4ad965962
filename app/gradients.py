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
    """Look the gradient up in the history of its tensor and storage, up to the step at which it was sent."""
    made = next((e for e in _history(recording, "tensor", sent.gradient, sent.step) if isinstance(e, TensorMade)), None)
    if made is None:
        return None
    mean = None
    for event in _history(recording, "storage", made.storage, sent.step):
        if isinstance(event, StorageWritten) and event.first == 0:
            values = elements_of(event.values, made.dtype)
            mean = float(np.mean(values.astype(np.float64))) if values is not None and values.size else None
        elif isinstance(event, StorageSummarised):
            mean = event.mean
    return GradientFacts(made.sizes, mean)


def _history(recording: Recording, kind: str, entity: int, upto: int) -> list[object]:
    return [recording.event(step) for step in recording.history(kind, entity) if step <= upto] if entity else []
