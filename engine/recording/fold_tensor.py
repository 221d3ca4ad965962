"""How op, tensor and storage events move the machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from stridescope.engine.events import (
    Event,
    KeysChosen,
    OpBegan,
    OpEnded,
    OpFailed,
    RequiresGradSet,
    StorageFreed,
    StorageMade,
    StorageResized,
    StorageSummarised,
    StorageWritten,
    TensorChanged,
    TensorFreed,
    TensorMade,
    VersionBumped,
    Wire,
)
from stridescope.engine.recording.content import Content, written
from stridescope.engine.recording.machine import Machine
from stridescope.engine.recording.model import OpState, Span, StorageState, TensorState

_SUMMARY_FIELDS = [field.name for field in dataclasses.fields(StorageSummarised)][1:]


def _op_began(machine: Machine, wire: Wire) -> None:
    _, op, inputs, arguments, frame, source, line, column, end_line, end_column = wire
    machine.here = frame or machine.here
    span = Span(source, line, column, end_line, end_column)
    machine.ops.append(OpState(op, machine.step, inputs, arguments, (), span, (), running=True))


def _keys_chosen(machine: Machine, wire: Wire) -> None:
    if machine.ops:
        machine.ops[-1].keys = wire[1]


def _finished(machine: Machine, name: str) -> OpState | None:
    """Take the innermost op of this name off the stack, with those above it that never reported their end."""
    while machine.ops:
        op = machine.ops.pop()
        if op.op == name:
            op.running, machine.last_op = False, op
            return op
    return None


def _op_ended(machine: Machine, wire: Wire) -> None:
    if (op := _finished(machine, wire[1])) is not None:
        op.outputs = wire[2]


def _op_failed(machine: Machine, wire: Wire) -> None:
    if (op := _finished(machine, wire[1])) is not None:
        op.error = wire[2]


def _tensor_made(machine: Machine, wire: Wire) -> None:
    _, tensor, storage, sizes, strides, offset, dtype, base, counter, requires_grad = wire
    _forget(machine, tensor)
    machine.tensors.put(
        tensor,
        TensorState(
            tensor, storage, sizes, strides, offset, dtype, base, counter,
            machine.versions.get(counter, 0), requires_grad, 0, 0, 0, machine.step, machine.op,
        ),
    )  # fmt: skip
    machine.join_siblings(tensor, counter)
    if tensor in machine.named:
        machine.rename(tensor)


def _forget(machine: Machine, tensor: int) -> None:
    row = machine.tensors.pop(tensor)
    if row is not None:
        machine.leave_siblings(tensor, row.counter)


def _tensor_changed(machine: Machine, wire: Wire) -> None:
    if (row := machine.tensors.edit(wire[1])) is not None:
        _, _, row.storage, row.sizes, row.strides, row.offset, row.dtype = wire


def _tensor_freed(machine: Machine, wire: Wire) -> None:
    _forget(machine, wire[1])


def _requires_grad_set(machine: Machine, wire: Wire) -> None:
    if (row := machine.tensors.edit(wire[1])) is not None:
        row.requires_grad = wire[2]


def _version_bumped(machine: Machine, wire: Wire) -> None:
    _, counter, version = wire
    machine.versions[counter] = version
    for tensor in machine.siblings.get(counter) or ():
        row = machine.tensors.edit(tensor)
        if row is None:
            continue
        row.version = version
        if counter not in (known := machine.bumped.get(row.storage, ())):
            machine.bumped[row.storage] = (*known, counter)


def _storage_made(machine: Machine, wire: Wire) -> None:
    _, storage, nbytes, device, address = wire
    machine.storages.put(storage, StorageState(storage, nbytes, device, address, machine.step, machine.step))
    if address in machine.allocator.blocks:
        machine.edit_allocator().apply(machine.step, wire)


def _storage_resized(machine: Machine, wire: Wire) -> None:
    _, storage, nbytes, address = wire
    if (row := machine.storages.edit(storage)) is not None:
        row.nbytes, row.address = nbytes, address
        if row.content is not None:
            row.content = Content(row.content.read(), nbytes)


def _storage_freed(machine: Machine, wire: Wire) -> None:
    machine.storages.pop(wire[1])
    for counter in machine.bumped.pop(wire[1], ()):
        if counter not in machine.siblings:
            machine.versions.pop(counter, None)


def _storage_written(machine: Machine, wire: Wire) -> None:
    _, storage, first, values = wire
    if (row := machine.storages.edit(storage)) is not None:
        row.content = written(row.content, values, first, row.nbytes)
        row.summary, row.written = None, machine.step


def _storage_summarised(machine: Machine, wire: Wire) -> None:
    if (row := machine.storages.edit(wire[1])) is not None:
        row.summary = dict(zip(_SUMMARY_FIELDS, wire[2:], strict=True))
        row.content, row.written = None, machine.step


FOLDS: dict[type[Event], Callable[[Machine, Wire], None]] = {
    OpBegan: _op_began,
    KeysChosen: _keys_chosen,
    OpEnded: _op_ended,
    OpFailed: _op_failed,
    TensorMade: _tensor_made,
    TensorChanged: _tensor_changed,
    TensorFreed: _tensor_freed,
    RequiresGradSet: _requires_grad_set,
    VersionBumped: _version_bumped,
    StorageMade: _storage_made,
    StorageResized: _storage_resized,
    StorageFreed: _storage_freed,
    StorageWritten: _storage_written,
    StorageSummarised: _storage_summarised,
}
