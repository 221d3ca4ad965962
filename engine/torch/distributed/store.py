"""Stores: texts and counters that several processes share. Here what all of them do, and those within one process."""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from stridescope.engine.torch.distributed.errors import DistStoreError, QueueEmptyError

DEFAULT_TIMEOUT = timedelta(seconds=300)


def as_bytes(value: str | bytes) -> bytes:
    """A value as it is stored; raises TypeError for anything but text and bytes."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    raise TypeError(f"a store keeps str and bytes, but got {type(value).__name__}")


def as_key(key: Any) -> str:
    """The key itself; raises TypeError when it is no text."""
    if not isinstance(key, str):
        raise TypeError(f"a store's keys are str, but got {type(key).__name__}")
    return key


def as_amount(amount: Any) -> int:
    """A number to add; raises TypeError for anything that is none."""
    if not hasattr(amount, "__int__"):
        raise TypeError(f"a store counts in int, but got {type(amount).__name__}")
    return int(amount)


def added(old: bytes | None, amount: int) -> bytes:
    """A counter's next value, as it is stored; raises ValueError when what is there is no number."""
    if old is None:
        return str(amount).encode()
    if not old.strip().lstrip(b"+-").isdigit():
        raise ValueError("stoll")
    return str(int(old) + amount).encode()


class Store:
    """What a store can do; kinds of stores give ``set``, ``get``, ``add``, ``compare_set`` and the questions."""

    def __init__(self) -> None:
        self._timeout = DEFAULT_TIMEOUT

    @property
    def timeout(self) -> timedelta:
        """How long ``get`` and ``wait`` wait."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Wait this long from now on."""
        if not isinstance(timeout, timedelta):
            raise TypeError(f"timeout must be a datetime.timedelta, but got {type(timeout).__name__}")
        self._timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        """Store a value."""
        raise self._abstract("set")

    def get(self, key: str) -> bytes:
        """The value of a key, for which it waits."""
        raise self._abstract("get")

    def add(self, key: str, amount: int) -> int:
        """Add to a counter, which begins at 0, and return it."""
        raise self._abstract("add")

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Set the key where it has the expected value (or none, when that is empty); return what it has then."""
        raise self._abstract("compareSet")

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are there."""
        raise self._abstract("wait")

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        raise self._abstract("check")

    def delete_key(self, key: str) -> bool:
        """Remove a key; whether it was there."""
        raise self._abstract("deleteKey")

    def num_keys(self) -> int:
        """How many keys there are."""
        raise self._abstract("getNumKeys")

    def list_keys(self) -> list[str]:
        """All keys."""
        raise self._abstract("listKeys")

    def append(self, key: str, value: str | bytes) -> None:
        """Lengthen a value."""
        raise self._abstract("append")

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Put a value at the end of a queue."""
        raise NotImplementedError("queue support is not implemented.")

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the value at the head of a queue; without ``block`` an empty one raises QueueEmptyError."""
        raise NotImplementedError("queue support is not implemented.")

    def queue_len(self, key: str) -> int:
        """How many values wait in a queue."""
        raise NotImplementedError("queue support is not implemented.")

    def clone(self) -> Store:
        """Another handle on the same store."""
        raise self._abstract("clone")

    def has_extended_api(self) -> bool:
        """Whether values can be appended, and several read at once, in one go."""
        return False

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Store several values."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Wait until ``world_size`` processes have come here with this key."""
        if self.add(f"{key}/num_members", 1) == world_size:
            self.set(f"{key}/last_member", "1")
        self.wait([f"{key}/last_member"], self.timeout if timeout is None else timeout)

    @staticmethod
    def _abstract(name: str) -> RuntimeError:
        return RuntimeError(f'Tried to call pure virtual function "::c10d::Store::{name}"')


class _Contents:
    """What a HashStore and its clones share."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.queues: defaultdict[str, deque[bytes]] = defaultdict(deque)
        self.changed = threading.Condition()


class HashStore(Store):
    """A store within one process: its threads share it."""

    def __init__(self) -> None:
        super().__init__()
        self._contents = _Contents()

    def set(self, key: str, value: str | bytes) -> None:
        """Store a value."""
        self._changed(as_key(key), lambda old: as_bytes(value))

    def get(self, key: str) -> bytes:
        """The value of a key; raises DistStoreError when it does not come in time."""
        self.wait([as_key(key)])
        return self._contents.values[key]

    def add(self, key: str, amount: int) -> int:
        """Add to a counter and return it; raises ValueError when the value there is no number."""
        number = as_amount(amount)
        return int(self._changed(as_key(key), lambda old: added(old, number)))

    def append(self, key: str, value: str | bytes) -> None:
        """Lengthen a value."""
        self._changed(as_key(key), lambda old: (old or b"") + as_bytes(value))

    def _changed(self, key: str, change: Callable[[bytes | None], bytes]) -> bytes:
        with self._contents.changed:
            result = self._contents.values[key] = change(self._contents.values.get(key))
            self._contents.changed.notify_all()
        return result

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Set the key where it has the expected value (or none, when that is empty); return what it has then."""
        expected, desired = as_bytes(expected_value), as_bytes(desired_value)
        with self._contents.changed:
            old = self._contents.values.get(as_key(key))
            if old is None and expected:
                return expected
            if old is None or old == expected:
                self._contents.values[key] = desired
                self._contents.changed.notify_all()
            return self._contents.values[key]

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are there; raises DistStoreError when they do not come in time."""
        self.wait_until(lambda: self.check(keys), timeout)

    def wait_until(self, there: Callable[[], Any], timeout: timedelta | None = None) -> None:
        """Wait until ``there()`` after a change; raises DistStoreError when that does not come in time."""
        patience = self.timeout if timeout is None else timeout
        with self._contents.changed:
            if not self._contents.changed.wait_for(there, patience.total_seconds()):
                raise DistStoreError("Wait timeout")

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        return all(key in self._contents.values for key in keys)

    def delete_key(self, key: str) -> bool:
        """Remove a key; whether it was there."""
        with self._contents.changed:
            return self._contents.values.pop(as_key(key), None) is not None

    def num_keys(self) -> int:
        """How many keys there are."""
        return len(self._contents.values)

    def list_keys(self) -> list[str]:
        """All keys."""
        with self._contents.changed:
            return list(self._contents.values)

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Put a value at the end of a queue."""
        with self._contents.changed:
            self._contents.queues[as_key(key)].append(as_bytes(value))
            self._contents.changed.notify_all()

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the value at the head of a queue; without ``block`` an empty one raises QueueEmptyError."""
        queue = self._contents.queues[as_key(key)]
        with self._contents.changed:
            if block:
                self.wait_until(lambda: queue)
            elif not queue:
                raise QueueEmptyError("queue is empty")
            return queue.popleft()

    def queue_len(self, key: str) -> int:
        """How many values wait in a queue."""
        return len(self._contents.queues[as_key(key)])

    def has_extended_api(self) -> bool:
        """Yes."""
        return True

    def clone(self) -> HashStore:
        """Another handle on the same contents."""
        twin = HashStore()
        twin._contents, twin._timeout = self._contents, self._timeout
        return twin


class PrefixStore(Store):
    """A part of another store: all its keys begin with ``prefix/``."""

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        if not isinstance(store, Store):
            raise TypeError(f"PrefixStore needs a store, but got {type(store).__name__}")
        self._prefix, self._store = as_key(prefix), store

    @property
    def underlying_store(self) -> Store:
        """The store that this is a part of."""
        return self._store

    @property
    def _underlying_non_prefix_store(self) -> Store:
        return self._store._underlying_non_prefix_store if isinstance(self._store, PrefixStore) else self._store

    @property
    def timeout(self) -> timedelta:
        """That of the store."""
        return self._store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set that of the store."""
        self._store.set_timeout(timeout)

    def _named(self, key: str) -> str:
        return f"{self._prefix}/{as_key(key)}"

    def set(self, key: str, value: str | bytes) -> None:
        """Store a value."""
        self._store.set(self._named(key), value)

    def get(self, key: str) -> bytes:
        """The value of a key, for which it waits."""
        return self._store.get(self._named(key))

    def add(self, key: str, amount: int) -> int:
        """Add to a counter and return it."""
        return self._store.add(self._named(key), amount)

    def append(self, key: str, value: str | bytes) -> None:
        """Lengthen a value."""
        self._store.append(self._named(key), value)

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Set the key where it has the expected value; return what it has then."""
        return self._store.compare_set(self._named(key), expected_value, desired_value)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are there."""
        self._store.wait([self._named(key) for key in keys], self.timeout if timeout is None else timeout)

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        return self._store.check([self._named(key) for key in keys])

    def delete_key(self, key: str) -> bool:
        """Remove a key; whether it was there."""
        return self._store.delete_key(self._named(key))

    def num_keys(self) -> int:
        """How many keys the whole store has."""
        return self._store.num_keys()

    def list_keys(self) -> list[str]:
        """This part's keys, without the prefix."""
        begin = f"{self._prefix}/"
        return [key.removeprefix(begin) for key in self._store.list_keys() if key.startswith(begin)]

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Put a value at the end of a queue."""
        self._store.queue_push(self._named(key), value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the value at the head of a queue."""
        return self._store.queue_pop(self._named(key), block)

    def queue_len(self, key: str) -> int:
        """How many values wait in a queue."""
        return self._store.queue_len(self._named(key))

    def has_extended_api(self) -> bool:
        """Whether the store has it."""
        return self._store.has_extended_api()

    def clone(self) -> PrefixStore:
        """The same part of another handle on the store."""
        return PrefixStore(self._prefix, self._store.clone())


def deadline(timeout: timedelta) -> float:
    """When a wait that begins now is over, on ``time.monotonic``'s clock."""
    return time.monotonic() + timeout.total_seconds()


HashStore.__module__ = "torch._C._distributed_c10d"
Store.__module__ = PrefixStore.__module__ = "torch.distributed.distributed_c10d"
