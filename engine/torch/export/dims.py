"""``torch.export.Dim``: names of sizes that may change."""

from __future__ import annotations

from typing import Any, ClassVar


class DimHint:
    """How a size is to be taken: as any, as it is, or as export finds."""

    __module__ = "torch.export.dynamic_shapes"

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return f"DimHint({self.kind})"

    def __call__(self, min: int | None = None, max: int | None = None) -> DimHint:
        """The hint with bounds."""
        return self


class Dim:
    """A size by name, with its bounds; ``Dim.AUTO``, ``Dim.DYNAMIC`` and ``Dim.STATIC`` are hints."""

    __module__ = "torch.export.dynamic_shapes"
    AUTO: ClassVar[DimHint] = DimHint("AUTO")
    DYNAMIC: ClassVar[DimHint] = DimHint("DYNAMIC")
    STATIC: ClassVar[DimHint] = DimHint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        low = 0 if min is None else min
        if max is not None and max <= low:
            raise AssertionError(f"Cannot create Dim with inconsistent min={low}, max={max}")
        self.__name__, self.min, self.max = name, low, max

    def __repr__(self) -> str:
        bounds = [] if self.min == 2 else [f"min={self.min}"]
        bounds += [] if self.max is None else [f"max={self.max}"]
        return f"Dim({', '.join([repr(self.__name__), *bounds])})"


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several sizes with the same bounds."""
    return tuple(Dim(name, min=min, max=max) for name in names)


def dynamic_of(shapes: Any) -> dict[int, Any]:
    """By dimension: what stands for a size that may change."""
    pairs = shapes.items() if isinstance(shapes, dict) else enumerate(shapes or ())
    return {d: s for d, s in pairs if isinstance(s, Dim) or (isinstance(s, DimHint) and s.kind != "STATIC")}
