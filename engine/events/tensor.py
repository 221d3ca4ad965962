"""Tensor and storage events."""

from __future__ import annotations

from stridescope.engine.events.base import Event


class StorageMade(Event, family="memory"):
    """A storage of {nbytes} bytes is made on {device}."""

    storage: int
    nbytes: int
    device: str
    address: int


class StorageResized(Event, family="memory"):
    """The storage now has {nbytes} bytes."""

    storage: int
    nbytes: int
    address: int


class StorageFreed(Event, family="memory"):
    """The last owner is gone: the storage is freed."""

    storage: int


class StorageWritten(Event, family="memory"):
    """The storage holds new values."""

    storage: int
    first: int
    values: bytes


class StorageSummarised(Event, family="memory"):
    """The storage holds new values between {minimum} and {maximum}, too many to keep."""

    storage: int
    dtype: str
    minimum: float
    maximum: float
    mean: float
    nans: int
    numel: int
    histogram: tuple[int, ...]


class TensorMade(Event, family="tensor"):
    """A tensor looks into a storage."""

    tensor: int
    storage: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: str
    base: int
    counter: int
    requires_grad: bool


class TensorChanged(Event, family="tensor"):
    """The tensor now looks elsewhere: its sizes, strides, offset or storage changed."""

    tensor: int
    storage: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: str


class TensorFreed(Event, family="tensor"):
    """The tensor is gone."""

    tensor: int


class RequiresGradSet(Event, family="tensor"):
    """requires_grad is now {value}."""

    tensor: int
    value: bool


class VersionBumped(Event, family="tensor"):
    """An in-place write raises the version to {version}."""

    counter: int
    version: int
