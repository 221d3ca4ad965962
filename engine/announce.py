"""Telling the recording of tensors and storages: what they are, when they are made, and what they hold."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from stridescope.engine.device import CPU
from stridescope.engine.dtype import dtype
from stridescope.engine.events import OpEnded, StorageSummarised, StorageWritten, TensorMade, VersionBumped, journal
from stridescope.engine.events.bundles import MADE, RESULT, VIEWED
from stridescope.engine.layout import row_major
from stridescope.engine.storage import ALIGNMENT, Array, Storage, Version, flat_bytes, next_address, next_storage_id

if TYPE_CHECKING:
    from stridescope.engine.tensor import Tensor

next_tensor_id = itertools.count(1).__next__
BINS, SAMPLED = 16, 512  # of the histogram in a storage's summary
_MADE, _WRITTEN, _ENDED = TensorMade.code, StorageWritten.code, OpEnded.code


def tensor_id(tensor: Tensor) -> int:
    """The tensor's number in events; the tensor is announced to the recording when it has none yet."""
    if not tensor._id:
        announce(tensor)
    return tensor._id


def announce(tensor: Tensor) -> None:
    """Give the tensor its id and tell the recording what it is and what it holds."""
    if (emit := journal.emit) is None:
        tensor._id = next_tensor_id()
        return
    if (made := small(tensor)) is not None:
        journal.bundle((MADE, *made))
        return
    number = tensor._id = next_tensor_id()
    array, kind, storage = tensor._array, tensor.dtype, tensor._storage or tensor.storage_
    sid = storage._id or storage.announce()
    counter = tensor._version_counter
    untold = counter is not None and counter.value and not counter.id  # written before the recording knew of it
    shared = number if counter is None else _counter_id(counter, number)
    base = 0 if tensor._base_tensor is None else tensor_id(tensor._base_tensor)
    strides = row_major(array.shape) if array.flags.c_contiguous and 1 not in array.shape else tensor.strides
    offset = 0 if storage.owner is array and array.size else tensor.offset
    emit((_MADE, number, sid, array.shape, strides, offset, kind.name, base, shared, tensor._requires_grad))
    if counter is not None and untold:
        emit((VersionBumped.code, shared, counter.value))
    if not storage.told:
        record_values(storage, kind)


def small(tensor: Tensor) -> tuple[Any, ...] | None:
    """Announce a new tensor on a small, dense CPU storage of its own: give its id, return what a bundle says of it.

    Returns None where the tensor is another one. The storage object need not be there: most tensors of a script
    live and die without one.
    """
    array, storage, counter = tensor._array, tensor._storage, tensor._version_counter
    nbytes, shape = array.nbytes, array.shape
    if not 0 < nbytes <= journal.keep_values or tensor._base_tensor is not None:
        return None
    kind = tensor.dtype
    shape, steps, strides = kind.row_major.get(shape) or _row_major_strides(kind, shape)
    if steps != array.strides or counter is not None and (counter.value or counter.id):
        return None
    if storage is None:
        sid, address = tensor._promised = next_storage_id(), next_address[0]
        next_address[0] = address + (nbytes + ALIGNMENT - 1 & -ALIGNMENT)
    elif storage._id or storage.owner is not array or storage.device is not CPU:
        return None
    else:
        sid, address, storage.told = storage.id, storage.address, True
    number = tensor._id = next_tensor_id()
    if counter is not None:
        counter.id = number
    return sid, nbytes, address, number, shape, strides, kind.name, tensor._requires_grad, array.tobytes()


def _view_of_known(tensor: Tensor) -> tuple[Any, ...] | None:
    """Announce a new view of a tensor that the recording knows: give its id, return what a bundle says of it."""
    base, storage, counter = tensor._base_tensor, tensor._storage, tensor._version_counter
    if base is None or storage is None or counter is None or not (base._id and counter.id):
        return None
    if not storage.told or not storage._id:
        return None
    array, number = tensor._array, next_tensor_id()
    tensor._id = number
    return (
        number, storage._id, array.shape, tensor.strides, tensor.offset, tensor.dtype.name, base._id, counter.id,
        tensor._requires_grad,
    )  # fmt: skip


def _row_major_strides(kind: dtype, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """A shape and its row-major strides in bytes and in elements; the dtype remembers them."""
    known = kind.row_major
    if len(known) > _MOST_LAYOUTS:
        known.clear()
    return known.setdefault(shape, (shape, row_major(shape, kind.itemsize), row_major(shape)))


_MOST_LAYOUTS = 4096  # remembered by a dtype


def announce_result(out: Tensor, op: str) -> None:
    """Tell the recording that ``op`` ends with ``out``, which is announced if it was not."""
    if not out._id and journal.emit is not None:
        # Most results are new tensors nobody has asked anything of: :func:`small` for those, without its questions.
        array, kind = out._array, out.dtype
        nbytes = array.nbytes
        unasked = out._storage is None and out._version_counter is None and out._base_tensor is None
        if unasked and 0 < nbytes <= journal.keep_values:
            shape = array.shape
            shape, steps, strides = kind.row_major.get(shape) or _row_major_strides(kind, shape)
            if steps == array.strides:
                sid, address = out._promised = next_storage_id(), next_address[0]
                next_address[0] = address + (nbytes + ALIGNMENT - 1 & -ALIGNMENT)
                number = out._id = next_tensor_id()
                grad, values = out._requires_grad, array.tobytes()
                journal.bundle((RESULT, sid, nbytes, address, number, shape, strides, kind.name, grad, values, op))
                return
        if (made := small(out)) is not None:
            journal.bundle((RESULT, *made, op))
            return
        if (seen := _view_of_known(out)) is not None:
            journal.bundle((VIEWED, *seen, op))
            return
        announce(out)
    if (emit := journal.emit) is not None:
        emit((_ENDED, op, (out._id,)))


def storage_facts(tensor: Tensor) -> tuple[int, int]:
    """The number and the bytes of an announced tensor's storage, which need not have been made."""
    if tensor._storage is None and tensor._promised is not None:
        return tensor._promised[0], tensor._array.nbytes
    storage = tensor.storage_
    return storage._id or storage.announce(), storage.nbytes


def _counter_id(counter: Version, number: int) -> int:
    """A counter is known by the first tensor that was announced with it."""
    if not counter.id:
        counter.id = number
    return counter.id


def record_values(storage: Storage, kind: dtype) -> None:
    """Tell the recording what the storage holds now, as far as it keeps values."""
    storage.told = True
    emit, keep = journal.emit, journal.keep_values
    if emit is None or keep < 0:
        return
    if storage.nbytes <= keep:
        emit((_WRITTEN, storage._id or storage.id, 0, storage_bytes(storage)))
    else:
        emit(summary(storage, kind))


def storage_bytes(storage: Storage) -> bytes:
    """A copy of everything the storage holds, in address order."""
    owner = storage.owner
    data: bytes = owner.tobytes() if owner.flags.c_contiguous else flat_bytes(owner).tobytes()
    return data


def summary(storage: Storage, kind: dtype) -> tuple[Any, ...]:
    """The StorageSummarised event of a storage read as ``kind``: range, mean, NaN count and a histogram of 16 bins."""
    values = storage.raw[: storage.nbytes // kind.itemsize * kind.itemsize].view(kind.np)
    real = np.abs(values) if kind.is_complex else values
    if real.dtype.kind == "V" or real.dtype.itemsize < 4:  # bfloat16, half, small integers: sums need more room
        real = real.astype(np.float32)
    low, high, nans = float(_min(real)), float(_max(real)), 0
    if not math.isfinite(high - low):
        nans = int(np.count_nonzero(np.isnan(real)))
        real = real[np.isfinite(real)]
        low, high = (float(_min(real)), float(_max(real))) if real.size else (0.0, 0.0)
    head = (StorageSummarised.code, storage.id, kind.name)
    return (*head, low, high, _mean(real), nans, values.size, _histogram(real, low, high))


# The ufuncs themselves: the methods of arrays go through two more Python calls.
_min: Any = np.minimum.reduce
_max: Any = np.maximum.reduce
_add: Any = np.add.reduce


def _mean(values: Array) -> float:
    """The mean of finite values, also where their sum is not finite; 0 of none."""
    count = values.size or 1
    total = float(_add(values, dtype=None if values.dtype.kind == "f" else np.float64))
    return total / count if math.isfinite(total) else float(_add(values.astype(np.float64) / count))


def _histogram(values: Array, low: float, high: float) -> tuple[int, ...]:
    """Counts in ``BINS`` equal parts of the range, of at most ``SAMPLED`` evenly spaced values."""
    if not values.size:
        return ()
    sample = values[:: -(-values.size // SAMPLED)].astype(np.float64)
    if not math.isfinite(high - low):  # the range itself overflows
        sample, low, high = sample * 0.5, low * 0.5, high * 0.5
    places = (sample - low) * (BINS / ((high - low) or 1.0))
    counts: list[int] = np.bincount(places.astype(np.intp), minlength=BINS + 1).tolist()
    return (*counts[: BINS - 1], counts[BINS - 1] + counts[BINS])  # the largest value belongs to the last part
