"""What a checkpointed function must find again when it runs a second time: random state and autocast."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any


def _torch() -> Any:
    return importlib.import_module("stridescope.engine.torch")


class Surroundings:
    """The state around a call; ``preserve`` says whether the random state belongs to it."""

    def __init__(self, preserve: bool) -> None:
        torch = _torch()
        self.random = torch.get_rng_state() if preserve else None
        self.autocast = {kind: _autocast_of(torch, kind) for kind in ("cpu", "cuda")}

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """Inside the block the state is as it was; afterwards it is again what it was before the block."""
        torch = _torch()
        with contextlib.ExitStack() as stack:
            for kind, settings in self.autocast.items():
                if settings is not None:
                    stack.enter_context(torch.amp.autocast(device_type=kind, **settings))
            if self.random is not None:
                before = torch.get_rng_state()
                stack.callback(torch.set_rng_state, before)
                torch.set_rng_state(self.random)
            yield


def _autocast_of(torch: Any, kind: str) -> dict[str, Any] | None:
    """The autocast settings to enter again, or None when it is off."""
    if not torch.is_autocast_enabled(kind):
        return None
    return {
        "enabled": True,
        "dtype": torch.get_autocast_dtype(kind),
        "cache_enabled": torch.is_autocast_cache_enabled(),
    }
