"""``torch.device``: the name of a place where storages live."""

from __future__ import annotations

import functools
from typing import Any

TYPES = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy",
    "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip


class device:
    """A device type and, for ``cuda``, an index; ``device("cuda:0")``, ``device("cuda", 0)``, ``device(0)``.

    Equal devices are one object, so ``is`` and hashing are cheap. Raises RuntimeError for an unknown string, with
    PyTorch's text.
    """

    __slots__ = ("__weakref__", "index", "type")
    type: str
    index: int | None

    def __new__(cls, type: str | int | device, index: int | None = None) -> device:
        """Return the one object for this name; raises RuntimeError for a string that names no device."""
        if isinstance(type, device):
            return type
        if isinstance(type, int) and not isinstance(type, bool):
            return _interned("cuda", type)
        return _interned(*_parsed(str(type), index))

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple[Any, ...]:
        return device, ((self.type,) if self.index is None else (self.type, self.index))

    def __enter__(self) -> device:
        """Let factories that name no device put new tensors here until the block ends."""
        DefaultDevice.outer.append(DefaultDevice.device)
        DefaultDevice.device = self
        return self

    def __exit__(self, *exc: object) -> None:
        DefaultDevice.device = DefaultDevice.outer.pop()

    def __copy__(self) -> device:
        return self

    def __deepcopy__(self, memo: Any) -> device:
        return self


def _parsed(text: str, index: int | None) -> tuple[str, int | None]:
    kind, colon, number = text.partition(":")
    if kind not in TYPES:
        raise RuntimeError(f"Expected one of {', '.join(TYPES)} device type at start of device string: {text}")
    if not colon:
        return kind, index
    if index is not None:
        raise RuntimeError("type (string) must not include an index because index was passed explicitly: " + text)
    if not number.isdigit() or (len(number) > 1 and number[0] == "0"):
        raise RuntimeError(f"Invalid device string: '{text}'")
    return kind, int(number)


@functools.cache
def _interned(kind: str, index: int | None) -> device:
    made = object.__new__(device)
    made.type, made.index = kind, index
    return made


CPU = device("cpu")
META = device("meta")


class DefaultDevice:
    """Where factories put new tensors when they are told no device: ``torch.set_default_device``, ``with device:``."""

    outer: list[device] = []  # what the blocks around the innermost ``with device:`` had
    device = CPU
