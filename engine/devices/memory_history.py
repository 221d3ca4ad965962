"""The history that ``torch.cuda.memory._record_memory_history`` keeps: a ring of trace entries with stacks."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from pathlib import Path
from types import CodeType
from typing import Any

from stridescope.engine.devices.block import Block, PoolId

# How much of the call stack is kept, from nothing to the stacks of frees.
NEVER, STATE, ALLOC, ALL = range(4)
CONTEXTS = {None: NEVER, "state": STATE, "alloc": ALLOC, "all": ALL}
ACTIONS = (
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "snapshot",
    "oom",
)

Stack = tuple[tuple[CodeType, int], ...]

# As code objects name their files: a link to the package is not followed.
_ROOMS = Path(os.path.abspath(__file__)).parent.parent.parent
# Frames that are not the user's: ours, those of generated op code, and Python's own start-up.
_NOT_THE_USERS = (f"{_ROOMS / 'engine'}{os.sep}", f"{_ROOMS / 'app'}{os.sep}", "<op ", "<frozen ")


class MemoryHistory:
    """What happened to the memory, oldest first; at most ``max_entries``."""

    def __init__(self, context: str | None, max_entries: int, skip_actions: frozenset[str], state_only: bool) -> None:
        self.level = CONTEXTS[context]
        self.skip_actions = skip_actions
        self.entries: deque[dict[str, Any]] = deque(maxlen=max(1 if state_only else min(max_entries, sys.maxsize), 1))
        self.metadata = ""

    def keep_entries_of(self, earlier: MemoryHistory) -> None:
        """Go on from an earlier history; PyTorch trims it only when the next entry comes."""
        self.metadata = earlier.metadata
        self.entries.extend(earlier.entries)

    def gather(self, level: int) -> Stack | None:
        """The present stack of the user's frames, innermost first, when the history wants it."""
        return user_stack() if self.level >= level else None

    def record(self, action: str, address: int, size: int, stream: int, pool_id: PoolId, stack: Stack | None) -> None:
        """Append an entry. For ``oom`` the address is the free memory of the device."""
        if action in self.skip_actions:
            return
        entry = {
            "action": action,
            "device_free" if action == "oom" else "addr": address,
            "size": size,
            "stream": stream,
            "time_us": time.time_ns() // 1000,
            "compile_context": "N/A",
            "user_metadata": self.metadata,
            "pool_id": pool_id,
        }
        if stack is not None and self.level >= ALLOC:
            entry["frames"] = stack
        self.entries.append(entry)

    def record_block(self, action: str, block: Block, stack: Stack | None) -> None:
        """Append an entry about a block: its requested bytes, not the rounded ones."""
        size = block.requested_size
        self.record(action, block.address, size, block.stream, block.pool.id, stack or block.stack)

    def as_snapshot(self) -> list[dict[str, Any]]:
        """The entries with their stacks written out, as ``device_traces`` holds them."""
        return [
            {**entry, "frames": frames_of(entry["frames"])} if "frames" in entry else dict(entry)
            for entry in self.entries
        ]


def user_stack() -> Stack:
    """The stack without the engine's own frames, innermost first."""
    frame, found = sys._getframe(1), []
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_NOT_THE_USERS):
            found.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back  # type: ignore[assignment]
    return tuple(found)


def frames_of(stack: Stack | None) -> list[dict[str, Any]]:
    """A stack as PyTorch writes it."""
    return [{"name": code.co_name, "filename": code.co_filename, "line": line} for code, line in stack or ()]
