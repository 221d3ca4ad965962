"""``torch.storage``: the storage objects that tensors hand out."""

from __future__ import annotations

from stridescope.engine.ops.storage_objects import TypedStorage, UntypedStorage, _LegacyStorage, _StorageBase

__all__ = ["TypedStorage", "UntypedStorage", "_LegacyStorage", "_StorageBase"]
