"""The names of a graph's nodes: valid in Python, each taken once, and none that hides a builtin."""

from __future__ import annotations

import builtins
import keyword
import math
import re
from typing import Any

_PARTS = re.compile(r"^([a-zA-Z_][0-9a-zA-Z_]*?)(?:_(\d+))?$")
_ILLEGAL = re.compile(r"[^0-9a-zA-Z_]+")
_TAKEN: dict[str, Any] = {
    **dict.fromkeys(keyword.kwlist),
    **vars(builtins),
    **dict.fromkeys(("torch", "device", "NoneType", "fx_pytree", "pytree")),
    "inf": math.inf,
    "nan": math.nan,
}


def snake_case(name: str) -> str:
    """``pascalCase`` as ``pascal_case``."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()


class Namespace:
    """Which names are taken, and what by."""

    def __init__(self) -> None:
        self.names: dict[Any, str] = {}
        self.used: set[str] = set()
        self.counts: dict[str, int] = {}

    def create_name(self, candidate: str, thing: Any = None) -> str:
        """A free name like the candidate; a thing that has one keeps it."""
        if thing is not None and thing in self.names:
            return self.names[thing]
        base, number = self._parts(candidate)
        candidate = base if number is None else f"{base}_{number}"
        if number is None or candidate in self.used:
            count = self.counts.get(base, 0)
            if _TAKEN.get(candidate, thing) is not thing or (thing is None and candidate in _TAKEN):
                count += 1
                candidate = f"{base}_{count}"
        else:
            count = int(number)
        while candidate in self.used:
            count += 1
            candidate = f"{base}_{count}"
        self.used.add(candidate)
        self.counts[base] = count
        if thing is not None:
            self.names[thing] = candidate
        return candidate

    def _parts(self, candidate: str) -> tuple[str, str | None]:
        match = _PARTS.match(candidate)
        if match is None:
            legal = _ILLEGAL.sub("_", candidate) or "_unnamed"
            match = _PARTS.match(f"_{legal}" if legal[0].isdigit() else legal)
        assert match is not None
        return match[1], match[2]
