"""``torch.multiprocessing``: Python's ``multiprocessing``; tensors that go through its queues are copied.

PyTorch would share their memory. Scripts see the difference only when one process writes into a tensor of another.
"""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections.abc import Callable, Sequence
from multiprocessing import *  # noqa: F403  # what PyTorch offers, too
from multiprocessing.connection import wait
from typing import Any

from stridescope.engine.torch._not_yet import missing_from

_STRATEGIES = frozenset({"file_descriptor", "file_system"})


class _Sharing:
    strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The names that ``set_sharing_strategy`` takes."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """The strategy that was asked for."""
    return _Sharing.strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Ask for a way to share tensors; here they are copied either way."""
    assert new_strategy in _STRATEGIES
    _Sharing.strategy = new_strategy


class ProcessException(Exception):
    """A process of :func:`spawn` failed.

    Attributes:
        error_index: which of the processes.
        error_pid: its process id.
    """

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, pid


class ProcessRaisedException(ProcessException):
    """The function raised an exception in its process."""


class ProcessExitedException(ProcessException):
    """The process ended without an exception, by a signal or with an exit status."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name


class ProcessContext:
    """The processes of one :func:`spawn`; ``join`` waits for them."""

    def __init__(self, processes: Sequence[Any], errors: Sequence[Any]) -> None:
        self.processes, self._errors = list(processes), list(errors)

    def pids(self) -> list[int]:
        """The ids of all processes."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for all processes (at most ``timeout`` seconds for the next one to end); True when all have ended.

        Raises:
            ProcessRaisedException: a function raised; the other processes are terminated.
            ProcessExitedException: a process ended otherwise than with status 0.
        """
        running = {process.sentinel: index for index, process in enumerate(self.processes) if process.is_alive()}
        ended = wait(list(running), timeout) if running else []
        for sentinel in ended:
            self.processes[running[sentinel]].join()  # its pipe closes a moment before it has an exit status
        for index, process in enumerate(self.processes):
            if process.exitcode not in (None, 0):
                self._stop(grace_period)
                self._report(index, process)
        return len(ended) == len(running)

    def _stop(self, grace_period: float | None) -> None:
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(grace_period)

    def _report(self, index: int, process: Any) -> None:
        if not self._errors[index].empty():
            told = self._errors[index].get()
            text = f"\n\n-- Process {index} terminated with the following error:\n{told}"
            raise ProcessRaisedException(text, index, process.pid)
        code = process.exitcode
        if code < 0:
            name = signal.Signals(-code).name
            message = f"process {index} terminated with signal {name}"
            raise ProcessExitedException(message, index, process.pid, code, name)
        raise ProcessExitedException(f"process {index} terminated with exit code {code}", index, process.pid, code)


def _called(fn: Callable[..., Any], index: int, args: tuple[Any, ...], errors: Any) -> None:
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the parent was interrupted as well
    except Exception:
        errors.put(traceback.format_exc())
        raise SystemExit(1) from None


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run ``fn(i, *args)`` in ``nprocs`` processes; with ``join`` wait for them, else return their context."""
    context: Any = multiprocessing.get_context(start_method)
    errors = [context.SimpleQueue() for _ in range(nprocs)]
    processes = [context.Process(target=_called, args=(fn, i, args, errors[i]), daemon=daemon) for i in range(nprocs)]
    for process in processes:
        process.start()
    started = ProcessContext(processes, errors)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """:func:`start_processes` with fresh Python processes."""
    return start_processes(fn, args, nprocs, join, daemon, "spawn")


__getattr__ = missing_from("torch.multiprocessing")
