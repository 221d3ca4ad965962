"""``torch._tensor_str``: the options by which tensors print."""

from __future__ import annotations

from stridescope.engine.printed import (
    get_printoptions,
    options,
    printoptions,
    set_printoptions,
)

PRINT_OPTS = options

__all__ = ["PRINT_OPTS", "get_printoptions", "printoptions", "set_printoptions"]
