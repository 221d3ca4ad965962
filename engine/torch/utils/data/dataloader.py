"""``DataLoader``: batches from a dataset, made in this process or in others."""

from __future__ import annotations

import itertools
import math
import multiprocessing
import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.context import BaseContext
from typing import Any, Generic, TypeVar

from stridescope.engine import torch
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.autograd._collector import labelled
from stridescope.engine.torch.utils.data._utils import worker as worker_process
from stridescope.engine.torch.utils.data._utils.collate import default_collate, default_convert
from stridescope.engine.torch.utils.data._utils.fetch import Recipe
from stridescope.engine.torch.utils.data._utils.worker import Ended, Failure, Place, Resume, Stop
from stridescope.engine.torch.utils.data.checks import check_options
from stridescope.engine.torch.utils.data.dataset import Dataset, IterableDataset
from stridescope.engine.torch.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

T = TypeVar("T", covariant=True)
PREFETCH = 2  # batches that each worker is asked for ahead
PATIENCE = 5.0  # seconds that a worker gets to end by itself
_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class _DatasetKind:
    Map = 0
    Iterable = 1


class _InfiniteConstantSampler(Sampler[None]):
    """What an iterable dataset is asked with: nothing, again and again."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader(Generic[T]):
    """Iterates over batches of a dataset; each ``iter`` is a new pass.

    Raises ValueError for options that contradict each other.
    """

    _initialized = False

    def __init__(
        self,
        dataset: Dataset[T],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        iterable = isinstance(dataset, IterableDataset)
        check_options(num_workers, timeout, prefetch_factor, persistent_workers)
        _check_sampling(iterable, batch_size, shuffle, sampler, batch_sampler, drop_last)
        self.dataset, self.num_workers, self.timeout = dataset, num_workers, timeout
        self.prefetch_factor = PREFETCH if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.worker_init_fn, self.in_order = worker_init_fn, in_order
        self.multiprocessing_context = multiprocessing_context
        self._dataset_kind = _DatasetKind.Iterable if iterable else _DatasetKind.Map
        if sampler is None:
            sampler = _sampler(dataset, iterable, bool(shuffle), generator)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        elif batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last, self.generator = batch_size, drop_last, generator
        self.sampler, self.batch_sampler = sampler, batch_sampler
        self.collate_fn = collate_fn or (default_collate if self._auto_collation else default_convert)
        self.persistent_workers = persistent_workers
        self._initialized = True
        self._promised: int | None = None
        self._iterator: _Pass | None = None
        self.check_worker_number_rationality()

    def __setattr__(self, attr: str, val: Any) -> None:
        if self._initialized and attr in _FIXED:
            raise ValueError(f"{attr} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(attr, val)

    @property
    def multiprocessing_context(self) -> Any:
        """How worker processes are started; None for Python's usual way."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None and self.num_workers <= 0:
            raise ValueError(
                "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                f"num_workers={self.num_workers}"
            )
        if isinstance(context, str):
            methods = multiprocessing.get_all_start_methods()
            if context not in methods:
                raise ValueError(
                    f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
                    f"multiprocessing_context={context!r}"
                )
            context = multiprocessing.get_context(context)
        if context is not None and not isinstance(context, BaseContext):
            raise TypeError(
                "multiprocessing_context option should be a valid context object or a string specifying the start "
                f"method, but got multiprocessing_context={context}"
            )
        self._context = context

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self) -> Iterator[Any]:
        if not (self.persistent_workers and self.num_workers > 0):
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator.begin()
        return self._iterator

    def _get_iterator(self) -> _Pass:
        return _SingleProcessDataLoaderIter(self) if self.num_workers == 0 else _MultiProcessingDataLoaderIter(self)

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        length = self._promised = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else math.ceil(length / self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warn when there are more workers than processors."""
        most = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if self.num_workers > most:
            unsure = "" if hasattr(os, "sched_getaffinity") else " (`cpuset` is not taken into account)"
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number "
                f"of worker in current system is {most}{unsure}, which is smaller than what this DataLoader is going "
                "to create. Please be aware that excessive worker creation might get DataLoader running slow or even "
                "freeze, lower the worker number to avoid potential slowness/freeze if necessary.",
                stacklevel=3,
            )


def _check_sampling(
    iterable: bool, batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: bool
) -> None:
    """Raise ValueError when the options that say in which order to draw exclude each other."""
    if iterable:
        unwanted = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
        for name, value in unwanted.items():
            if value is not None:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
                )
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
    if batch_sampler is None and batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")


def _sampler(dataset: Any, iterable: bool, shuffle: bool, generator: Any) -> Any:
    if iterable:
        return _InfiniteConstantSampler()
    return RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)


class _Pass:
    """One pass over the data."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self.loader = loader
        self.recipe = Recipe(
            loader.dataset, loader._dataset_kind == _DatasetKind.Iterable, loader._auto_collation, loader.collate_fn,
            loader.drop_last,
        )  # fmt: skip
        self.pin = loader.pin_memory and torch.cuda.is_available()
        if loader.pin_memory and not self.pin:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
                "used.",
                stacklevel=4,
            )
        self.indices: Iterator[Any] = iter(loader._index_sampler)
        self.base_seed = int(torch.empty((), dtype=torch.int64).random_(generator=loader.generator).item())
        self.yielded = 0

    def begin(self) -> None:
        """Begin another pass."""
        self.indices, self.yielded = iter(self.loader._index_sampler), 0

    def __iter__(self) -> _Pass:
        return self

    def __len__(self) -> int:
        return len(self.loader._index_sampler)

    @labelled(lambda self: f"enumerate(DataLoader)#{type(self).__name__}.__next__")
    def __next__(self) -> Any:
        data = self.next_batch()
        self.yielded += 1
        promised = self.loader._promised
        if self.recipe.iterable and promised is not None and self.yielded > promised:
            self._warn_longer(promised)
        return _pinned(data) if self.pin else data

    def next_batch(self) -> Any:
        """The next batch; raises StopIteration after the last."""
        raise NotImplementedError

    def _warn_longer(self, promised: int) -> None:
        text = (
            f"Length of IterableDataset {self.recipe.dataset} was reported to be {promised}(when accessing "
            f"len(dataloader)), but {self.yielded} samples have been fetched. "
        )
        if self.loader.num_workers > 0:
            text += (
                "For multiprocessing data-loading, this could be caused by not properly configuring the "
                "IterableDataset replica at each worker. Please see "
                "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples."
            )
        warnings.warn(text, stacklevel=3)


class _SingleProcessDataLoaderIter(_Pass):
    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        self.fetch = self.recipe.fetcher()

    def next_batch(self) -> Any:
        return self.fetch(next(self.indices))


class _Worker:
    """A worker process as the main process sees it."""

    def __init__(self, number: int, owner: _Pass) -> None:
        loader = owner.loader
        context: Any = loader.multiprocessing_context or multiprocessing
        self.tasks = context.Queue()
        self.tasks.cancel_join_thread()
        self.answers, sending = context.Pipe(duplex=False)
        place = Place(number, loader.num_workers, owner.base_seed, os.getpid(), loader.worker_init_fn)
        arguments = (owner.recipe, place, self.tasks, sending)
        self.process = context.Process(target=worker_process.run, args=arguments, daemon=True)
        self.process.start()
        sending.close()  # so that its end is noticed
        self.ended = False

    def receive(self, timeout: float) -> Any:
        """The next answer; raises RuntimeError when it doesn't come or the process has died."""
        if timeout > 0 and not self.answers.poll(timeout):
            raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
        try:
            return self.answers.recv()
        except EOFError:
            raise RuntimeError(f"DataLoader worker (pid(s) {self.process.pid}) exited unexpectedly") from None

    def stop(self) -> None:
        """Ask the process to end."""
        self.tasks.put(Stop())
        self.answers.close()  # a worker that is about to send stops at once

    def join(self) -> None:
        """Wait for the process; end it when it doesn't by itself."""
        self.process.join(PATIENCE)
        if self.process.is_alive():
            self.process.terminate()
            self.process.join()
        self.tasks.close()


class _MultiProcessingDataLoaderIter(_Pass):
    """Asks the workers in turn, some batches ahead, and yields the answers in the order of the questions."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        self.workers: list[_Worker] = []
        for number in range(loader.num_workers):
            self.workers.append(_Worker(number, self))
        self._ask_ahead()

    def begin(self) -> None:
        super().begin()
        for worker in self.workers:
            self._discard(worker)
            worker.tasks.put(Resume())
            worker.ended = False
        self._ask_ahead()

    def _discard(self, worker: _Worker) -> None:
        """Take the answers to questions of a pass that was not finished."""
        for asked in self.asked:
            if asked is worker:
                worker.receive(self.loader.timeout)

    def _ask_ahead(self) -> None:
        self.asked: deque[_Worker] = deque()
        self.turn = itertools.cycle(self.workers)
        for _ in range((self.loader.prefetch_factor or 0) * len(self.workers)):
            self._ask()

    def _ask(self) -> None:
        """Ask the next worker that has not ended for the next batch."""
        if all(worker.ended for worker in self.workers):
            return
        try:
            index = next(self.indices)
        except StopIteration:
            return
        worker = next(worker for worker in self.turn if not worker.ended)
        worker.tasks.put(index)
        self.asked.append(worker)

    def next_batch(self) -> Any:
        while self.asked:
            worker = self.asked.popleft()
            answer = worker.receive(self.loader.timeout)
            if isinstance(answer, Ended):
                worker.ended = True
            self._ask()
            if isinstance(answer, Failure):
                answer.reraise()
            if not isinstance(answer, Ended):
                return answer
        if not self.loader.persistent_workers:
            self._shutdown_workers()
        raise StopIteration

    def _shutdown_workers(self) -> None:
        workers, self.workers = self.workers, []
        self.asked = deque()
        for worker in workers:
            worker.stop()
        for worker in workers:
            worker.join()

    def __del__(self) -> None:
        if getattr(self, "workers", None):
            self._shutdown_workers()


def _pinned(data: Any) -> Any:
    """The batch in page-locked memory."""
    if isinstance(data, Tensor) or hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, dict):
        return {key: _pinned(value) for key, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(_pinned, data))
    if isinstance(data, (list, tuple)):
        return type(data)(map(_pinned, data))
    return data
