"""A long loop that runs no op is recorded line by line at first, then without its names, then no longer.

A function that is called very often in a row without any op is recorded a number of times, then no longer.

Where ops run between the lines, that is done only while lines take more than their share of the time, and only to
lines and functions that run no op themselves. The more lines run for an op, the sooner that is asked.

A person steps through hundreds of rounds of a loop, not through millions; recording them all would take many times
the script's own time and fill the disk with numbers nobody looks at. Lines that run ops are always recorded, and while
something can stop the script (a step, a breakpoint, a pause) all lines are. Where rationing sets in the recording
says so (:class:`~stridescope.engine.events.LineRationed`), and names that it no longer follows stand for
:data:`UNFOLLOWED` until a line that is not rationed is reached.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from stridescope.engine.worker.names import Names

if TYPE_CHECKING:
    from stridescope.engine.worker.calls import Call, Code

STRIDE = 251  # lines between two samples: a prime, so that the samples fall on every line of a loop
DEAR_STRIDE = 61  # the same between ops, while lines take too much of the time
WITHOUT_NAMES = 400  # estimated visits after which a line's names are not followed
SILENT = 1_000  # estimated visits after which a line is not recorded
CALLS = 1_000  # calls in a row without an op after which a function is not recorded
AMONG_OPS = 8  # a line between ops that take their time too counts so often: it is rationed that much earlier
LINE_SECONDS = 6e-6  # what a recorded line takes, its names and the recording's own thread included
LINES_SHARE = 0.1  # of the time; a script between whose ops more lines run than that allows is rationed too
# So many lines are recorded before any question of what they cost, and some more for each op, up to so many.
FREE_LINES, FREE_LINES_OF_AN_OP, MOST_FREE_LINES = 2_000, 8, 8_000
UNFOLLOWED = "… (changes too often to be recorded)"
# What stands in the place of a rationed line's names; told apart by identity.
NAMELESS, QUIET = Names((), (), ()), Names((), (), ())


class Ration:
    """Decides, sample by sample, which lines are rationed."""

    def __init__(self) -> None:
        self.wanted = True  # False while something can stop the script, or when every line is asked for
        self._codes: list[Code] = []
        self.begin()

    def begin(self) -> None:
        """Count the time and the lines from now on: from the first op, that is, not from the imports before it."""
        self._began, self._lines = time.process_time(), 0

    def is_too_dear(self, lines: int, ops: int) -> bool:
        """Take note of so many more lines, and say whether lines take more than their share of the time."""
        self._lines += lines
        if self._lines <= min(FREE_LINES + FREE_LINES_OF_AN_OP * ops, MOST_FREE_LINES):
            return False
        return self._lines * LINE_SECONDS > LINES_SHARE * (time.process_time() - self._began)

    def sample(self, call: Call, line: int, visits: int) -> Names | None:
        """Take note that a line was reached about so often without an op; return what it is rationed to from now on."""
        code = call.code
        visits += code.visits.get(line, 0)
        code.visits[line] = visits
        if visits < WITHOUT_NAMES:
            return None
        wanted = NAMELESS if visits < SILENT else QUIET
        if code.names.get(line) is wanted:
            return None
        if code.names is code.plan:
            code.names = dict(code.plan)
            self._codes.append(code)
        code.names[line] = wanted
        code.ration(line)
        if wanted is QUIET:
            code.silent.add(line)
        return wanted

    def count_call(self, code: Code) -> bool:
        """Count a call since which no op ran; return whether calls are not recorded from now on."""
        code.calls += 1
        return code.calls >= CALLS and self._hush(code)

    def count_free_call(self, code: Code, dear: bool) -> bool:
        """Count a call that has ended without any op; ``dear`` says whether lines take too much time."""
        code.free_calls += 1
        return dear and code.free_calls >= CALLS and self._hush(code)

    def _hush(self, code: Code) -> bool:
        if code.quiet or code.woken or not self.wanted:
            return False
        code.quiet = True
        self._codes.append(code)
        return True

    def lift(self) -> bool:
        """Record every line again; return whether any was rationed."""
        codes, self._codes = self._codes, []
        for code in codes:
            code.lift()
        return bool(codes)
