"""``torch.return_types``: the named tuples that functions with several results return."""

from __future__ import annotations

from typing import Any

from stridescope.engine.dispatch.op import DECLARED
from stridescope.engine.dispatch.return_types import RETURN_TYPES, return_type

for _op in DECLARED:
    _names = _op.schema.return_names
    if _op.function and not _op.schema.writes and len(_names) > 1 and all(_names) and _op.name[0] != "_":
        return_type(_op.name, _names)


def __getattr__(name: str) -> Any:
    kind = RETURN_TYPES.get(name)
    if kind is None:
        raise AttributeError(f"module 'torch.return_types' has no attribute '{name}'")
    return kind


__all__ = sorted(RETURN_TYPES)
