"""Going to a step that is far off: how often a picture is shown on the way.

Painting every stretch of it would keep the window from mouse and keys.
"""

from __future__ import annotations

APART = 0.3  # seconds between two pictures on the way, at least
SHARE = 4  # and this many times what the last picture took


class CatchingUp:
    """Shows fewer pictures on the way while they are dear."""

    def __init__(self) -> None:
        self._next_picture = 0.0

    def wants_picture(self, now: float) -> bool:
        """Say whether it is time to show how far we are."""
        return now >= self._next_picture

    def shown(self, begun: float, now: float) -> None:
        """Take note of a picture that was begun and is finished now."""
        self._next_picture = now + max(APART, SHARE * (now - begun))
