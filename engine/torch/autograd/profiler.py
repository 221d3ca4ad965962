"""``torch.autograd.profiler``: labels may be written; nothing is measured here, for the recording has every op."""

from __future__ import annotations

from typing import Any, Self

from stridescope.engine.autograd.modes import ModeContext
from stridescope.engine.torch._not_yet import refusal


class record_function(ModeContext):  # noqa: N801
    """Labels a block or function for a profiler, of which there is none; accepted for the scripts that use it."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        """Nothing was begun."""

    def clone(self) -> record_function:
        """The same label."""
        return type(self)(self.name, self.args)


class emit_nvtx:  # noqa: N801
    """Marks ops for NVIDIA's tools; only ``enabled=False`` is here."""

    _name = "emit_nvtx"

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        if enabled:
            raise refusal("torch.autograd.profiler", self._name)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        """Nothing was begun."""


class emit_itt(emit_nvtx):  # noqa: N801
    """Marks ops for Intel's tools; only ``enabled=False`` is here."""

    _name = "emit_itt"


class profile:  # noqa: N801
    """Measures ops; only ``enabled=False`` is here: a recording says what ran, and when."""

    def __init__(self, enabled: bool = True, **options: Any) -> None:
        if enabled:
            raise refusal("torch.autograd.profiler", "profile")
        self.enabled = enabled

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        """Nothing was begun."""


for _class in (record_function, emit_nvtx, emit_itt, profile):
    _class.__module__ = "torch.autograd.profiler"
__all__ = ["emit_itt", "emit_nvtx", "profile", "record_function"]
