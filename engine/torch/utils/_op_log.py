"""What ``checkpoint(debug=True)`` knows when the two runs differ: the ops of both, and where the script called them."""

from __future__ import annotations

import contextlib
import sys
import types
import weakref
from collections.abc import Iterator
from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.utils._python_dispatch import TorchDispatchMode
from stridescope.engine.warn import is_ours

_REPORT = """ \
An error happened while unpacking tensors; dumping logs of latest computation
because you passed `debug=True` to `torch.utils.checkpoint.checkpoint()`.
Scroll all the way down for guidance on how to navigate these logs.

+~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~+
|        1. Stack traces of the operators that ran in the original forward     |
+------------------------------------------------------------------------------+

{forward_traces}
+~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~+
|        2. Stack traces of the operators that ran during recomputation        |
+------------------------------------------------------------------------------+

{recompute_traces}
+~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~+
|       3. Log of operators in the original forward and recomputation          |
+------------------------------------------------------------------------------+
(Scroll up to correlate stack traces with each operation listed below. This
 helps identify their source in the code.)

IMPORTANT: Differences in "detach" calls between the original forward and the
           recomputation are expected. They are introduced by the checkpointing
           mechanism and can be ignored.

Operations executed during the original forward:

{forward_ops}

Operations executed during recomputation:

{recompute_ops}

+------------------------------------------------------------------------------+
 ERROR: Detected non-determinism while running activation checkpointing

 You are seeing this error because you passed `debug=True` to checkpoint and
 tensors to be saved during the original forward and differ between those saved
 during recomputation. This can happen if different operators were ran in the
 original forward and in the recomputation.

 To identify where the mismatch may be coming from, you can do the following:

 1) Compare the operators ran during original forward and recomputation to
    see where they differ. These operators are printed above in the order they
    were executed.

 2) Review the stack trace for each operator to locate its invocation source.
    Each operator's stack trace is printed in their execution order.

 Note that the logs can be quite long. Here's how they are structured:
 (Tip: you can Ctrl-f for these headers)

 1. Stack traces of the operators that ran in the original forward
 2. Stack traces of the operators that ran during recomputation
 3. Log of operators in the original forward and recomputation
 4. Error message                                             <--- You are here
--------------------------------------------------------------------------------
"""


class OpLog(TorchDispatchMode):
    """Writes down every op of one run.

    Attributes:
        lines: one text for each op, with tensors as numbers in the order in which they are first seen.
        places: for each op the lines of the script that led to it, innermost first.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.places: list[list[str]] = []
        self._numbers: dict[int, tuple[weakref.ref[Tensor], int]] = {}
        self._next = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **kwargs)
        given = [self._shown(a) for a in args] + [f"{name}={self._shown(a)}" for name, a in kwargs.items()]
        self.lines.append(f"{self._shown(result, True)} = torch._ops.{func}({', '.join(given)})")
        self.places.append(list(_places(sys._getframe(1))))
        return result

    def _shown(self, value: Any, typed: bool = False) -> str:
        if isinstance(value, Tensor):
            kind = f": {value.dtype.abbr}[{', '.join(map(str, value.shape))}]" if typed else ""
            return f"${self._number(value)}{kind}"
        if isinstance(value, (list, tuple)):
            items = [self._shown(item, typed) for item in value]
            return str(items if isinstance(value, list) else tuple(items))
        return repr(value)

    def _number(self, tensor: Tensor) -> int:
        known, number = self._numbers.get(id(tensor), (None, 0))
        if known is None or known() is not tensor:
            number, self._next = self._next, self._next + 1
            self._numbers[id(tensor)] = weakref.ref(tensor), number
        return number

    def traces(self, label: str) -> str:
        """Every op with the lines of the script that led to it."""
        parts = []
        for number, (line, places) in enumerate(zip(self.lines, self.places, strict=True), 1):
            parts.append("\n".join([f"{line}   ({number} of {len(self.lines)} in {label})", "", *places, "", "", ""]))
        return "".join(parts)


def _places(frame: types.FrameType | None) -> Iterator[str]:
    while frame is not None:
        if not is_ours(frame) and frame.f_code.co_filename != "<string>":
            yield f"{frame.f_code.co_filename}:{frame.f_lineno}:{frame.f_code.co_name}"
        frame = frame.f_back


class BothRuns:
    """The logs of the first and of the second run."""

    def __init__(self) -> None:
        self.original, self.recompute = OpLog(), OpLog()

    def contexts(self) -> tuple[contextlib.AbstractContextManager[Any], contextlib.AbstractContextManager[Any]]:
        """What stands around the two runs."""
        return self.original, self.recompute

    def report(self) -> str:
        """The text of the error."""
        return _REPORT.format(
            forward_traces=self.original.traces("original"),
            recompute_traces=self.recompute.traces("recompute"),
            forward_ops="\n".join(self.original.lines),
            recompute_ops="\n".join(self.recompute.lines),
        )
