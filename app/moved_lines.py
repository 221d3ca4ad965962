"""Lines that move: where a line stands after an edit, here or in another editor, and which line it was before.

Breakpoints are kept by line, and stay on what the line says.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

AROUND = 3  # lines above and below by which equal lines are told apart
LONGEST_COMPARED = 2000  # lines that differ, beyond which they are not compared line by line

Surroundings = tuple[str, ...]


def shifted(line: int, first: int, from_start: bool, by: int) -> int:
    """Return the new number of ``line`` after an edit in line ``first`` that added ``by`` lines, or removed some.

    ``from_start`` says that the edit began before the first character of that line: then it moves as well.
    """
    first_moved = first if from_start else first + 1
    if by >= 0:
        return line + by if line >= first_moved else line
    return line + by if line >= first_moved - by else min(line, first)


def surroundings(lines: Sequence[str], line: int) -> Surroundings:
    """Return a line with the lines around it, without their indents."""
    numbers = range(line - AROUND, line + AROUND + 1)
    return tuple(lines[number - 1].strip() if 0 < number <= len(lines) else "" for number in numbers)


def found_again(lines: Sequence[str], line: int, before: Surroundings) -> int:
    """Return the line that says what ``line`` said, in surroundings most like those before, else the nearest such."""
    wanted = before[AROUND] if len(before) == 2 * AROUND + 1 else ""
    if not wanted:
        return line
    candidates = [number for number, text in enumerate(lines, 1) if text.strip() == wanted]

    def likeness(number: int) -> tuple[int, int]:
        pairs = zip(surroundings(lines, number), before, strict=True)
        return sum(one == other for one, other in pairs), -abs(number - line)

    return max(candidates, key=likeness, default=line)


def lines_before(old: Sequence[str], new: Sequence[str]) -> list[int]:
    """Return for each line of ``new`` its number in ``old``, 0 for one that was not there; both count from 1."""
    common = range(min(len(old), len(new)))
    head = next((at for at in common if old[at] != new[at]), len(common))
    rest = range(min(len(old), len(new)) - head)
    tail = next((at for at in rest if old[-1 - at] != new[-1 - at]), len(rest))
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    found = [*range(1, head + 1), *[0] * len(middle_new), *range(len(old) - tail + 1, len(old) + 1)]
    if max(len(middle_old), len(middle_new)) <= LONGEST_COMPARED:
        matcher = difflib.SequenceMatcher(None, middle_old, middle_new, autojunk=False)
        for there, here, count in matcher.get_matching_blocks():
            found[head + here : head + here + count] = range(head + there + 1, head + there + 1 + count)
        _take_changed(found, matcher, head)
    return found


def _take_changed(found: list[int], matcher: difflib.SequenceMatcher[str], head: int) -> None:
    """Lines that were rewritten one by one are the same lines still."""
    for kind, old_first, old_end, new_first, new_end in matcher.get_opcodes():
        if kind == "replace":
            for old, new in zip(range(old_first, old_end), range(new_first, new_end), strict=False):
                found[head + new] = head + old + 1
