"""``torch.utils.deterministic``: whether unset memory holds known values under deterministic algorithms."""

from __future__ import annotations

import sys
import types

from stridescope.engine.ops.determinism import Determinism


class _Module(types.ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether ``torch.empty`` and its kin fill what they make while deterministic algorithms are asked for."""
        return Determinism.fill

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"expected bool, but got {type(mode).__name__}")
        Determinism.fill = mode


sys.modules[__name__].__class__ = _Module
