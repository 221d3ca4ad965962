"""Pillow, which only scripts with pictures need."""

from __future__ import annotations

from typing import Any


def pillow() -> Any:
    """Pillow's ``Image``; raises ImportError that says how to get it."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("pictures need Pillow: pip install pillow") from None
    return Image
