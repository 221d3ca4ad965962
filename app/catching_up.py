"""Following a head that is far ahead: how many events are read at once, and how often a picture is shown on the way.

A recording that grows is read event by event. Reading a second's worth of them at once, or painting every stretch of
the way, would keep the window from mouse and keys.
"""

from __future__ import annotations

FEWEST, MOST = 2500, 1 << 18  # events that are read between two looks at mouse and keys
SHORT, LONG = 0.03, 0.08  # seconds that reading them may take
APART = 0.3  # seconds between two pictures on the way, at least
SHARE = 4  # and this many times what the last picture took


class CatchingUp:
    """Takes longer strides while they are read quickly, and fewer pictures while they are dear."""

    def __init__(self) -> None:
        self._stride = FEWEST
        self._known = -1  # the last step that was ever looked at: up to there every step is near
        self._next_picture = 0.0

    def begin(self) -> None:
        """Another recording is read from its first step."""
        self._known = -1

    def towards(self, target: int) -> int:
        """Return the step to look at next on the way to ``target``: itself, where it is not far ahead."""
        return min(target, self._known + self._stride) if 0 <= self._known < target else target

    def read(self, step: int, seconds: float) -> None:
        """Take note of how long it took to read up to a step."""
        known, self._known = self._known, max(step, self._known)
        if step <= known:
            return
        if seconds < SHORT:
            self._stride = min(MOST, 2 * self._stride)
        elif seconds > LONG:
            self._stride = max(FEWEST, self._stride // 2)

    def wants_picture(self, now: float) -> bool:
        """Say whether it is time to show how far we are."""
        return now >= self._next_picture

    def shown(self, begun: float, now: float) -> None:
        """Take note of a picture that was begun and is finished now."""
        self._next_picture = now + max(APART, SHARE * (now - begun))
