"""A fresh simulated GPU for every test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from stridescope.engine.devices import registry
from stridescope.engine.devices.streams import set_current_stream


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """``import torch`` of a script that has not touched the GPU yet."""
    for name in ("_choice", "_devices", "_settings", "_seed"):
        monkeypatch.setattr(registry, name, None)
    monkeypatch.delenv("PYTORCH_CUDA_ALLOC_CONF", raising=False)
    monkeypatch.setenv(registry.ENVIRONMENT_VARIABLE, "sim:1GiB")
    import stridescope.engine.torch as torch

    yield torch
    set_current_stream(0, 0)
