"""The bundled lessons: short scripts that the welcome page offers."""

from __future__ import annotations

import dataclasses
import importlib.resources


@dataclasses.dataclass(frozen=True)
class Lesson:
    """A lesson's file in ``resources/lessons``, and what it teaches."""

    file: str
    title: str
    help: str

    @property
    def path(self) -> str:
        """Where the script lies."""
        return str(importlib.resources.files("stridescope.resources") / "lessons" / self.file)


LESSONS: tuple[Lesson, ...] = (
    Lesson("strides_and_grads.py", "Strides and gradients", "Views on one storage, the graph, the way back"),
    Lesson("view_or_copy.py", "View or copy?", "When reshape copies, and what contiguous means"),
    Lesson("in_place.py", "In place", "Version counters: why backward sometimes refuses"),
    Lesson("training_loop.py", "A training loop", "Weights, gradients and steps, by hand"),
    Lesson("allocator.py", "The GPU allocator", "Blocks that are cut, cached and joined on a GPU"),
)
