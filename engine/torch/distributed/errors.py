"""The errors of ``torch.distributed``."""

from __future__ import annotations


class DistError(RuntimeError):
    """Something between processes went wrong."""


class DistBackendError(DistError):
    """A process group failed."""


class DistNetworkError(DistError):
    """A connection could not be made, or broke."""


class DistStoreError(DistError):
    """A store did not have in time what was waited for."""


class QueueEmptyError(DistStoreError):
    """A queue of a store is empty."""


for _class in (DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError):
    _class.__module__ = "torch.distributed"
