"""Numbers as people read them: bytes to arrays, elements to texts, sizes to KiB."""

from __future__ import annotations

import math
import re
from typing import Any

import ml_dtypes
import numpy as np

_ABBREVIATIONS = {
    "float": "f", "bfloat": "bf", "int": "i", "uint": "u", "complex": "c",
}  # fmt: skip
_SPECIAL: dict[str, np.dtype[Any]] = {"bool": np.dtype(np.bool_), "bfloat16": np.dtype(ml_dtypes.bfloat16)}


_UNITS = ("KiB", "MiB", "GiB", "TiB")
_LONG_SIZE = re.compile(r"(?<![\w.])(\d{4,})(?![\w.])(?: bytes\b| 字节(?P<joined>(?=\w))?)?")


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype that carries PyTorch's dtype ``name``, with or without its ``torch.``."""
    name = name.removeprefix("torch.")
    if name in _SPECIAL:
        return _SPECIAL[name]
    kind: np.dtype[Any] = np.dtype(getattr(np, name, None) or getattr(ml_dtypes, name))
    return kind


def short_dtype(name: str) -> str:
    """Return ``f32`` for ``float32``, ``bf16`` for ``bfloat16``, ``bool`` for ``bool``."""
    name = name.removeprefix("torch.")
    letters = name.rstrip("0123456789")
    return _ABBREVIATIONS.get(letters, letters) + name[len(letters) :]


def elements_of(values: bytes | None, dtype: str) -> np.ndarray | None:
    """Return the elements that a storage's bytes hold, or None where they are not kept."""
    if values is None:
        return None
    kind = numpy_dtype(dtype)
    return np.frombuffer(values[: len(values) // kind.itemsize * kind.itemsize], kind)


def element_text(value: object) -> str:
    """Return an element in at most six characters, as a tensor prints it where that fits."""
    if isinstance(value, (bool, np.bool_)):
        return "True" if value else "False"
    if isinstance(value, (int, np.integer)):
        return str(value) if abs(int(value)) < 10**6 else f"{float(value):.0e}"
    if isinstance(value, (complex, np.complexfloating)):
        return f"{value:.2g}"
    return _float_text(float(value))  # type: ignore[arg-type]


def _float_text(value: float) -> str:
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 10**4:
        return f"{int(value)}." if value or math.copysign(1, value) > 0 else "-0."
    if 0.005 <= abs(value) < 1000:
        return f"{value:.2f}" if abs(value) < 100 else f"{value:.1f}"
    return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")


def size_text(nbytes: int) -> str:
    """Return a size in bytes as people say it: 512 B, 1.50 KiB, 20.0 MiB."""
    if nbytes < 1024:
        return f"{nbytes} B"
    size, unit = nbytes / 1024, 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.2f} {_UNITS[unit]}" if size < 10 else f"{size:.1f} {_UNITS[unit]}"


def sizes_in_words(text: str) -> str:
    """Return ``text`` with its long numbers of bytes in KiB and MiB."""

    def in_words(found: re.Match[str]) -> str:
        apart = " " if found["joined"] is not None else ""  # Chinese goes on with no space after its own word
        return size_text(int(found[1])) + apart

    return _LONG_SIZE.sub(in_words, text)


def shape_text(sizes: tuple[int, ...]) -> str:
    """Return ``3×4`` for (3, 4), and ``scalar`` for ()."""
    return "×".join(map(str, sizes)) if sizes else "scalar"


def list_text(numbers: tuple[int, ...]) -> str:
    """Return ``3, 4`` for (3, 4), and ``()`` for ()."""
    return ", ".join(map(str, numbers)) if numbers else "()"
