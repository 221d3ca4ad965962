"""What people set up for a script and find again when they open it: its breakpoints, its watches."""

from __future__ import annotations

import json
import os
from typing import Any

from PySide6.QtCore import QSettings

SCRIPTS_KEPT = 200  # the scripts that were worked on longest ago are forgotten first


class ByScript:
    """Lists of plain values, one for each script, in the user's settings under one key."""

    def __init__(self, key: str) -> None:
        self._key = key

    def of(self, script: str) -> list[Any]:
        """Return what is kept for a script."""
        kept = self._all().get(os.path.realpath(script), []) if script else []
        return kept if isinstance(kept, list) else []

    def keep(self, script: str, values: list[Any]) -> None:
        """Keep these values for a script, or nothing where the list is empty."""
        if not script:
            return
        kept = self._all()
        kept.pop(os.path.realpath(script), None)
        kept[os.path.realpath(script)] = values
        newest = [(path, listed) for path, listed in kept.items() if listed][-SCRIPTS_KEPT:]
        QSettings().setValue(self._key, json.dumps(dict(newest)))

    def _all(self) -> dict[str, Any]:
        try:
            kept = json.loads(str(QSettings().value(self._key, "{}")))
        except ValueError:  # of another version, or edited by hand
            return {}
        return kept if isinstance(kept, dict) else {}
