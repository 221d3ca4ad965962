"""``torch.torch_version``: a version that is a string and compares as versions do (PEP 440), with tuples as well."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from stridescope.engine.torch.version import __version__ as _written

__all__ = ["TorchVersion"]

# The parts of a version as PEP 440 defines them, in their order.
_FORM = re.compile(
    r"\s*v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<stage>alpha|a|beta|b|preview|pre|c|rc)[-_.]?(?P<stage_number>\d*))?"
    r"(?P<post>-(?P<post_alone>\d+)|[-_.]?(?:post|rev|r)[-_.]?(?P<post_number>\d*))?"
    r"(?P<dev>[-_.]?dev[-_.]?(?P<dev_number>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?\s*",
    re.IGNORECASE,
)
_STAGES = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}
_FIRST, _LAST = (-1,), (1,)  # before and after all that is given, which begins with 0


class InvalidVersion(ValueError):
    """A text that is no version."""


class Version:
    """A version by its parts. Raises InvalidVersion for what is none."""

    def __init__(self, version: str) -> None:
        found = _FORM.fullmatch(version)
        if found is None:
            raise InvalidVersion(f"Invalid version: {version!r}")
        self._text = version.strip()
        self._key = _key(found)

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Version) else NotImplemented

    def __lt__(self, other: Any) -> bool:
        return self._key < other._key if isinstance(other, Version) else NotImplemented

    def __le__(self, other: Any) -> bool:
        return self._key <= other._key if isinstance(other, Version) else NotImplemented

    def __gt__(self, other: Any) -> bool:
        return self._key > other._key if isinstance(other, Version) else NotImplemented

    def __ge__(self, other: Any) -> bool:
        return self._key >= other._key if isinstance(other, Version) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<Version('{self}')>"


def _key(found: re.Match[str]) -> tuple[Any, ...]:
    """What orders versions: without its trailing zeros, a release comes after its previews, before its posts."""
    release = [int(part) for part in found["release"].split(".")]
    while len(release) > 1 and not release[-1]:
        release.pop()
    stage, post, dev = found["stage"], found["post"], found["dev"]
    before: tuple[Any, ...] = _FIRST if dev and not post else _LAST
    if stage:
        stage = stage.lower()
        before = (0, _STAGES.get(stage, stage), int(found["stage_number"] or 0))
    after = (0, int(found["post_alone"] or found["post_number"] or 0)) if post else _FIRST
    developed = (0, int(found["dev_number"] or 0)) if dev else _LAST
    return int(found["epoch"] or 0), tuple(release), before, after, developed, _local(found["local"])


def _local(text: str | None) -> tuple[Any, ...]:
    """A local label: numbers come after words."""
    if text is None:
        return _FIRST
    parts = re.split(r"[-_.]", text.lower())
    return 0, tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts)


class TorchVersion(str):
    """A version as a string; what it is compared with may be a string, a Version or numbers: ``>= (2, 1)``."""

    __slots__ = ()


def _as_version(value: Any) -> Version:
    if isinstance(value, Version):
        return value
    if isinstance(value, str):
        return Version(value)
    if isinstance(value, Iterable):
        return Version(".".join(str(part) for part in value))
    raise InvalidVersion(value)


def _comparison(name: str) -> Callable[[TorchVersion, Any], Any]:
    def compare(self: TorchVersion, other: Any) -> Any:
        try:
            return getattr(Version(self), name)(_as_version(other))
        except InvalidVersion:  # then they compare as texts
            return getattr(str, name)(self, other)

    return compare


for _name in ("__gt__", "__lt__", "__eq__", "__ge__", "__le__"):  # set from outside, the hash stays that of the text
    setattr(TorchVersion, _name, _comparison(_name))
TorchVersion.__module__ = "torch.torch_version"

__version__ = TorchVersion(_written)
