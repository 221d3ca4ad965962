"""Where the storages of a checkpoint go: ``map_location``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from stridescope.engine.device import CPU, META, device
from stridescope.engine.devices.registry import cuda_devices
from stridescope.engine.ops.storage_objects import UntypedStorage, handle
from stridescope.engine.storage import CudaStorage, Storage

Restore = Callable[[UntypedStorage, str], UntypedStorage]


def restorer(map_location: Any) -> Restore:
    """A function that puts a storage, just read into host memory, where ``map_location`` says."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(storage, map_location.get(location, location))
    if isinstance(map_location, (str, bytes, device)):
        target = map_location.decode() if isinstance(map_location, bytes) else str(map_location)
        return lambda storage, location: default_restore_location(storage, target)

    def by_function(storage: UntypedStorage, location: str) -> UntypedStorage:
        placed: UntypedStorage | None = map_location(storage, location)
        return default_restore_location(storage, location) if placed is None else placed

    return by_function


def default_restore_location(storage: UntypedStorage, location: str) -> UntypedStorage:
    """The storage on the device of that name; raises RuntimeError when there is no such device."""
    if location == "cpu":
        return storage
    memory = storage._over.raw
    if location == "meta":
        return handle(Storage(memory, META))
    if re.fullmatch(r"cuda(:\d+)?", location):
        return handle(CudaStorage(memory, _cuda(location)))
    raise RuntimeError(
        "don't know how to restore data location of torch.storage.UntypedStorage (tagged with " + location + ")"
    )


def _cuda(location: str) -> device:
    count = len(cuda_devices())
    if not count:
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are "
            "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your "
            "storages to the CPU."
        )
    place = device("cuda", device(location).index or 0)
    if place.index is not None and place.index >= count:
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {place.index} but torch.cuda.device_count() is {count}. "
            "Please use torch.load with map_location to map your storages to an existing device."
        )
    return place


def location_of(storage: Storage) -> str:
    """How a checkpoint names where a storage lies."""
    return "cpu" if storage.device is CPU else str(storage.device)
