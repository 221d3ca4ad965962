"""``torch.futures``: values that are there later."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")
S = TypeVar("S")
_OURS = __file__.rpartition("torch")[0]


class Future(Generic[T]):
    """A value that is there later: set by ``set_result`` or ``set_exception``, waited for by ``wait``."""

    def __init__(self, *, devices: Any = None) -> None:
        if devices is not None:
            _check_devices(devices)
        self._changed = threading.Condition()
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], Any]] = []
        self._bring: Callable[[], Any] | None = None  # what a waiting thread does to make it come
        self._look: Callable[[], Any] | None = None  # what asking whether it is there does first

    def done(self) -> bool:
        """Whether there is a value or an error."""
        if not self._done and self._look is not None:
            self._look()
        return self._done

    def wait(self) -> T:
        """Wait for the value and return it; an error is raised."""
        if not self._done and self._bring is not None:
            self._bring()
        with self._changed:
            self._changed.wait_for(lambda: self._done)
        return self.value()

    def value(self) -> T:
        """The value, which must be there; an error is raised."""
        if not self.done():
            raise RuntimeError("value() of a Future that is not completed: call wait() instead")
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[no-any-return]

    def set_result(self, result: T) -> None:
        """Give it its value and run the callbacks; raises RuntimeError when it is completed."""
        self._complete(result, None)

    def set_exception(self, result: Exception) -> None:
        """Give it an error that ``wait`` raises."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, value: Any, error: BaseException | None) -> None:
        with self._changed:
            if self._done:
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future can only be marked "
                    "completed once."
                )
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for callback in callbacks:
            callback(self)

    def _when_done(self, callback: Callable[[Future[T]], Any]) -> None:
        with self._changed:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """The future of ``callback(self)``, which is called when this one is completed."""
        if not callable(callback):
            raise TypeError(f"then() needs something to call, but got {type(callback).__name__}")
        later: Future[S] = Future()
        later._bring, later._look = self._settled, self.done
        self._when_done(lambda done: _call(callback, done, later))
        return later

    def _settled(self) -> None:
        """Wait until it is completed, in whatever way."""
        if not self._done and self._bring is not None:
            self._bring()
        with self._changed:
            self._changed.wait_for(lambda: self._done)

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call ``callback(self)`` when this is completed; what it raises is only printed."""
        self._when_done(lambda done: _run(callback, done))

    def __repr__(self) -> str:
        return f"<torch.jit.Future object at {id(self):#x}>"


def _check_devices(devices: Any) -> None:
    from stridescope.engine.device import device
    from stridescope.engine.devices.registry import device_count

    for place in map(device, devices):
        if place.type == "cuda" and not device_count():
            raise RuntimeError("PyTorch is not linked with support for cuda devices")
        if place.index is None:
            raise ValueError(f"Expected devices to have indices, got {place}")


def _failure(error: Exception) -> str:
    """What PyTorch says of an error in a callback: its text and where it was, innermost first."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_OURS)]
    places = "".join(f"  {frame.filename}({frame.lineno}): {frame.name}\n" for frame in reversed(frames))
    return f"Got the following error when running the callback: {type(error).__name__}: {error}\n\nAt:\n{places}"


def _call(callback: Callable[[Any], Any], done: Any, later: Future[Any]) -> None:
    try:
        result = callback(done)
    except Exception as error:
        later._complete(None, RuntimeError(_failure(error)))
    else:
        later.set_result(result)


def _run(callback: Callable[[Any], Any], done: Any) -> None:
    try:
        callback(done)
    except Exception as error:
        print(_failure(error), file=sys.stderr)


def _settle(futures: list[Future[Any]]) -> None:
    for future in futures:
        future._settled()


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """The future of the list of these futures: completed when all are, with the first one's error if one failed."""
    whole: Future[list[Future[Any]]] = Future()
    left = [len(futures)]

    def arrived(one: Future[Any]) -> None:
        left[0] -= 1
        if left[0] == 0:
            errors = [future._error for future in futures if future._error is not None]
            whole._complete(None if errors else list(futures), errors[0] if errors else None)

    whole._bring = lambda: _settle(futures)
    whole._look = lambda: [future.done() for future in futures]
    if not futures:
        whole.set_result([])
    for future in futures:
        future._when_done(arrived)
    return whole


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """Wait for all and return their values; the first error is raised."""
    return [future.wait() for future in collect_all(futures).wait()]


Future.__module__ = "torch.jit"
__all__ = ["Future", "collect_all", "wait_all"]
