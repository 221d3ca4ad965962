"""``Timer``: how long a statement takes."""

from __future__ import annotations

import contextlib
import enum
import textwrap
import timeit
from collections.abc import Callable, Iterator
from typing import Any

from stridescope.engine import torch
from stridescope.engine.torch._not_yet import refusal
from stridescope.engine.torch.utils.benchmark.measurement import Measurement, TaskSpec


class Language(enum.Enum):
    """What the statement is written in."""

    PYTHON = 0
    CPP = 1


def timer() -> float:
    """The clock in seconds, after all work of the GPU is done."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return timeit.default_timer()


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Another number of threads inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Timer:
    """Times a statement, as ``timeit.Timer`` does, with ``torch`` at hand and one thread unless told otherwise.

    Args:
        stmt, setup: what is timed, and what comes before. globals: the names they use. timer: the clock.
        label, sub_label, description: how tables name it (heading, row, column). num_threads: how many threads.
    """

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "", timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None, label: str | None = None, sub_label: str | None = None,
        description: str | None = None, env: str | None = None, num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:  # fmt: skip
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language not in (Language.PYTHON, "py", "python"):
            raise refusal("torch.utils.benchmark", "Timer(language='c++')")
        stmt, setup = (textwrap.dedent(text).strip("\n").rstrip() for text in (stmt, setup))
        names = {"torch": torch, **(globals or {})}
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)
        self._clock, self._timer = timer, timeit.Timer(stmt, setup, timer, names)

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Run so often, after a warm-up of a hundredth of that, and measure once."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return self._measured(number, [self._timeit(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Not here, as in PyTorch: see :meth:`blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], Any] | None = None) -> None:
        """Not here, as in PyTorch: see :meth:`blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block_size(self, shortest: float) -> int:
        """So many runs that reading the clock costs less than a thousandth of them."""
        overhead = min(self._overhead() for _ in range(5))
        number = 1
        while True:
            time = self._timeit(number)
            if overhead <= time * 1e-4 and time >= shortest / 1000 or time > shortest:
                return number
            number *= 10

    def _overhead(self) -> float:
        return max(timeit.Timer(timer=self._clock).timeit(0), 0.0)

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Measure blocks of runs until ``min_run_time`` seconds have been measured."""
        with set_torch_threads(self._task_spec.num_threads):
            number, times = self._block_size(min_run_time), list[float]()
            while sum(times) < min_run_time:
                times.append(self._timeit(number))
                if callback is not None:
                    callback(number, times[-1])
        return self._measured(number, times)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:  # fmt: skip
        """Measure blocks of runs until their spread is below ``threshold``, or ``max_run_time`` is over."""
        with set_torch_threads(self._task_spec.num_threads):
            number, times = self._block_size(0.05), list[float]()
            while sum(times) < max_run_time:
                times.append(self._timeit(number))
                if callback is not None:
                    callback(number, times[-1])
                enough = len(times) > 3 and sum(times) > min_run_time
                if enough and self._measured(number, times).meets_confidence(threshold):
                    break
        return self._measured(number, times)

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> None:
        """Counting instructions is not here."""
        raise refusal("torch.utils.benchmark", "Timer.collect_callgrind")
