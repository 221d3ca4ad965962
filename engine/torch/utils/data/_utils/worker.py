"""What a DataLoader's worker process does: it takes indices from a queue and sends batches back."""

from __future__ import annotations

import os
import queue
import random
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from stridescope.engine import torch
from stridescope.engine.torch.utils.data._utils.fetch import Recipe

LOOK_AROUND = 5.0  # seconds after which a waiting worker looks whether its parent is still there
WORD = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What ``get_worker_info`` tells code that runs in a worker."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


class _Here:
    """What this process is; None in the main process."""

    info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a worker process, which of how many it is, its seed and its dataset; None in the main process."""
    return _Here.info


class Ended(NamedTuple):
    """The answer of a worker whose stream has ended."""


class Resume(NamedTuple):
    """Asks a worker to begin another pass."""


class Stop(NamedTuple):
    """Asks a worker to end."""


class Failure(NamedTuple):
    """The answer of a worker whose dataset raised."""

    kind: type[BaseException]
    text: str

    def reraise(self) -> None:
        """Raise the same type of error, with the worker's traceback as its text."""
        message: Any = _Verbatim(self.text) if self.kind is KeyError else self.text
        try:
            error = self.kind(message)
        except Exception:  # a class that wants other arguments
            raise RuntimeError(self.text) from None
        raise error


class _Verbatim(str):
    """A KeyError shows the ``repr`` of its text; this one shows the lines as they are."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Place(NamedTuple):
    """Which worker this is."""

    id: int
    count: int  # type: ignore[assignment]
    base_seed: int
    parent: int
    init: Callable[[int], Any] | None


def run(recipe: Recipe, place: Place, tasks: Any, answers: Any) -> None:
    """Answer tasks until it is asked to stop or the parent is gone."""
    try:
        _seed(place)
        _Here.info = WorkerInfo(place.id, place.count, place.base_seed + place.id, recipe.dataset)
        _serve(recipe, place, tasks, answers)
    except (KeyboardInterrupt, BrokenPipeError):
        pass  # the main process says what has happened


def _serve(recipe: Recipe, place: Place, tasks: Any, answers: Any) -> None:
    fetch: Any = _prepared(recipe, place)
    while not isinstance(task := _next_task(tasks, place.parent), Stop):
        if isinstance(task, Resume):
            fetch = recipe.fetcher()
        elif isinstance(fetch, Failure):
            answers.send(fetch)
        else:
            answers.send(_answer(fetch, task, recipe.iterable, place.id))


def _prepared(recipe: Recipe, place: Place) -> Any:
    """The fetcher, or how making it failed."""
    try:
        if place.init is not None:
            place.init(place.id)
        return recipe.fetcher()
    except Exception:
        return _failure(place.id)


def _next_task(tasks: Any, parent: int) -> Any:
    while True:
        try:
            return tasks.get(timeout=LOOK_AROUND)
        except queue.Empty:
            if os.getppid() != parent:
                return Stop()


def _answer(fetch: Callable[[Any], Any], index: Any, iterable: bool, worker: int) -> Any:
    try:
        return fetch(index)
    except Exception as error:
        return Ended() if isinstance(error, StopIteration) and iterable else _failure(worker)


def _failure(worker: int) -> Failure:
    """The error that is being handled; frames of ours are left out of its traceback."""
    kind, error, trace = sys.exc_info()
    assert kind is not None and error is not None
    shown = traceback.TracebackException(kind, error, trace)
    own = os.path.dirname(os.path.dirname(__file__))
    shown.stack = traceback.StackSummary.from_list([f for f in shown.stack if not f.filename.startswith(own)])
    lines = "".join(shown.format())
    return Failure(kind, f"Caught {kind.__name__} in DataLoader worker process {worker}.\nOriginal {lines}")


def _seed(place: Place) -> None:
    """Give each of the three generators this worker's own sequence."""
    seed = place.base_seed + place.id
    random.seed(seed)
    torch.manual_seed(seed)  # type: ignore[attr-defined]
    words = [place.id, place.base_seed & WORD, place.base_seed >> 32, 0]
    np.random.seed(np.random.SeedSequence(words).generate_state(4))
