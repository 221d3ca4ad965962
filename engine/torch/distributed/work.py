"""``Work``: an exchange between ranks that was begun. What this rank gives was sent; what it gets is on its way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from stridescope.engine.torch.futures import Future

Finish = Callable[[timedelta], Any]


class Work:
    """An exchange that was begun; ``wait`` returns when its tensors hold what they get.

    The tensors are written by the thread that waits or asks, so that a stepped script sees where it happens.
    """

    def __init__(
        self, finish: Finish, ready: Callable[[], bool], timeout: timedelta, result: list[Any] | None = None
    ) -> None:
        self._finish, self._ready, self._timeout, self._result = finish, ready, timeout, result
        self._done, self._error = False, None
        self._source: int | None = None
        self._future: Future[Any] | None = None
        self._told: Callable[[Work], Any] | None = None

    _error: BaseException | None

    def when_settled(self, told: Callable[[Work], Any]) -> None:
        """Tell whoever keeps the work that it is settled."""
        self._told = told

    def shows(self, result: list[Any]) -> None:
        """Give these tensors as the result: what the caller gave, where the work is done on parts of it."""
        self._result = result

    def settle(self, timeout: timedelta | None = None) -> None:
        """Wait, and keep the error if there is one."""
        if self._done:
            return
        self._done = True
        try:
            self._source = self._finish(timeout or self._timeout)
        except Exception as error:
            self._error = error
        if self._told is not None:
            self._told(self)
        if self._future is not None:
            self._future._complete(self._result, self._error)

    def look(self) -> bool:
        """Finish it if that needs no waiting; whether it is finished."""
        if not self._done and self._ready():
            self.settle()
        return self._done

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Wait until it is done; True. Raises RuntimeError when a rank is gone or the time is over."""
        self.settle(timeout)
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self) -> None:
        """The same."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether it is done."""
        return self.look()

    def is_success(self) -> bool:
        """Whether it is done and did not fail."""
        return self.look() and self._error is None

    def exception(self) -> BaseException | None:
        """What it failed with."""
        self.look()
        return self._error

    def result(self) -> list[Any]:
        """The tensors that it wrote."""
        if self._result is None:
            raise RuntimeError("result() not implemented.")
        return self._result

    def get_future(self) -> Future[Any]:
        """The future of the tensors that it writes."""
        if self._result is None:
            raise RuntimeError("Work::getFuture not implemented.")
        if self._future is None:
            self._future = Future()
            self._future._bring, self._future._look = self.settle, self.look
            if self._done:
                self._future._complete(self._result, self._error)
        return self._future

    def source_rank(self) -> int:
        """For a receive, the rank that sent."""
        if self._source is None:
            raise RuntimeError(
                "sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call."
            )
        return self._source

    _source_rank = source_rank


Work.__module__ = "torch.distributed.distributed_c10d"
