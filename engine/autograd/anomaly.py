"""Anomaly mode: every node remembers the forward call that made it, and gradients are checked for NaN."""

from __future__ import annotations

import traceback
import warnings
from typing import Any

from stridescope.engine.autograd.modes import anomaly
from stridescope.engine.autograd.node import Node, on_creation
from stridescope.engine.tensor import Tensor
from stridescope.engine.warn import internal, warn

_PACKAGE = __name__.partition(".engine.")[0] + "."
# What starts a script: frames outside these are those of the command that did.
_STARTERS = tuple(_PACKAGE + name for name in ("app.", "engine.commands", "engine.worker"))
NO_TRACE = "No forward pass information available. Enable detect anomaly during forward pass for more information."
TRACE, PARENT = "traceback_", "parent_"  # the keys that PyTorch uses in a node's metadata


def switch(enabled: bool, check_nan: bool = True) -> None:
    """Turn anomaly mode on or off."""
    if enabled and not anomaly.enabled:
        on_creation.append(remember)
    elif not enabled and anomaly.enabled:
        on_creation.remove(remember)
    anomaly.enabled, anomaly.check_nan = enabled, check_nan


def remember(node: Node) -> None:
    """Keep the stack that made this node, and the node whose backward made it, if one did."""
    from stridescope.engine.autograd.task import running

    stack = _stack()
    inside = next((n for n, (name, _) in enumerate(stack) if name.startswith(_STARTERS)), 0)
    node.metadata[TRACE] = [line for name, line in stack[inside:] if not name.startswith(_PACKAGE)]
    if running.node is not None:
        node.metadata[PARENT] = running.node


def _stack() -> list[tuple[str, str]]:
    """The (module name, formatted line) of each frame, outermost first."""
    frames = list(traceback.walk_stack(None))[::-1]
    lines = traceback.StackSummary.extract(iter(frames)).format()
    # The generated callables of ops have no module.
    names = [str(frame.f_globals.get("__name__", _PACKAGE)) for frame, _ in frames]
    return list(zip(names, lines, strict=False)) if len(names) == len(lines) else [("", line) for line in lines]


def describe(node: Node) -> None:
    """Warn where the forward call was whose backward has just failed, and which backward that call was made in."""
    _told(node, f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n", 122)
    seen: set[int] = set()
    parent = node.metadata.get(PARENT)
    while parent is not None and id(parent) not in seen:
        seen.add(id(parent))
        _told(
            parent,
            f"\n\nPrevious calculation was induced by {parent.name()}. Traceback of forward call that induced the "
            "previous calculation:\n",
            129,
        )
        parent = parent.metadata.get(PARENT)


def _told(node: Node, head: str, line: int) -> None:
    """Warn with the node's traceback under ``head``; ``line`` is where PyTorch warns of it."""
    lines: Any = node.metadata.get(TRACE)
    if lines is None:
        text, line = f"Error detected in {node.name()}. {NO_TRACE}", 100
    else:
        text = head + "".join(lines)
    warn(internal(text, f"torch/csrc/autograd/python_anomaly_mode.cpp:{line}"))


def check_nan(node: Node, results: tuple[Tensor | None, ...]) -> None:
    """Refuse a gradient that holds NaN."""
    for number, gradient in enumerate(results):
        if gradient is not None and gradient.dtype.category >= 2 and bool(gradient.detach().isnan().any()):
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {number}th output.")


class detect_anomaly:  # noqa: N801
    """``with torch.autograd.detect_anomaly():`` anomaly mode inside the block."""

    def __init__(self, check_nan: bool = True) -> None:
        self.before = anomaly.enabled, anomaly.check_nan
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        switch(True, self.check_nan)

    def __exit__(self, *exc: object) -> None:
        switch(*self.before)


class set_detect_anomaly:  # noqa: N801
    """Anomaly mode from here on; as a context manager it also switches back."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.before = anomaly.enabled, anomaly.check_nan
        switch(mode, check_nan)

    def __enter__(self) -> None:
        """The switch was made when the context was."""

    def __exit__(self, *exc: object) -> None:
        switch(*self.before)


for _mode in (detect_anomaly, set_detect_anomaly):
    _mode.__module__ = "torch.autograd.anomaly_mode"
