"""The rules of the caching allocator once more, as plainly as they can be said: lists, searched from end to end.

No expandable segments. It exists to disagree with the allocator: it shares no code with it, keeps no indices, and
recomputes what it needs. ``PlainModel(trace).result()`` gives the addresses, segments and counters of a trace.
"""

from __future__ import annotations

import dataclasses
from typing import Any

MIB = 1 << 20


class NoMemory(Exception):
    """The request cannot be served."""


@dataclasses.dataclass(eq=False)
class Piece:
    """A block."""

    at: int
    size: int
    state: str = "inactive"
    requested: int = 0
    uses: set[int] = dataclasses.field(default_factory=set)
    awaited: int = 0
    since: int = 0

    @property
    def is_free(self) -> bool:
        return self.state == "inactive"


@dataclasses.dataclass(eq=False)
class Area:
    """A segment: ``pool`` is 0 for the default one, else the number of the private pool."""

    at: int
    size: int
    small: bool
    stream: int
    pool: int
    pieces: list[Piece]


class PlainModel:
    """Options are given as numbers in bytes; ``divisions`` is one number for all sizes."""

    def __init__(
        self, trace: dict[str, Any], *, max_split: int = 0, rounding: int = 20 * MIB, divisions: int = 0,
        threshold: float = 0.0, large_segment: int = 20 * MIB,
    ) -> None:  # fmt: skip
        self.total, self.max_split, self.rounding = trace["total"], max_split or 1 << 70, rounding
        self.divisions, self.threshold, self.large_segment = divisions, threshold, large_segment
        fraction = trace.get("fraction", 1.0)
        self.limit = int(fraction * self.total) if fraction < 1.0 else None
        self.areas: list[Area] = []
        self.next, self.named, self.where = 0, dict[str, Piece](), dict[str, str]()
        self.queues: dict[int, list[tuple[dict[str, bool], Piece]]] = {}
        self.held: dict[int, list[dict[str, bool]]] = {}
        self.kinds: dict[str, tuple[int, bool, bool]] = {}
        self.users: dict[int, int] = {}
        self.inside: list[str] = []
        self.searches: dict[tuple[int, bool], int] = {}
        self.counts = dict.fromkeys(("num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc",
                                     "num_device_free"), 0)  # fmt: skip
        for op in trace["ops"]:
            getattr(self, "do_" + op[0])(*op[1:])

    # ---- the calls of a trace

    def do_alloc(self, name: str, size: int, stream: int) -> None:
        try:
            piece = self.malloc(size, stream)
        except NoMemory:
            self.where[name] = "oom"
            return
        self.named[name], self.where[name] = piece, str(piece.at)

    def do_free(self, name: str) -> None:
        piece = self.named.pop(name, None)
        if piece is None:
            return
        if not piece.uses:
            self.complete(piece)
            return
        piece.state = "active_pending_free"
        for stream in piece.uses:
            event = {"done": stream not in self.held}
            self.held.get(stream, []).append(event)
            piece.awaited += 1
            self.queues.setdefault(stream, []).append((event, piece))
        piece.uses = set()

    def do_record(self, name: str, stream: int) -> None:
        piece = self.named.get(name)
        if piece is not None and stream != self.area_of(piece).stream:
            piece.uses.add(stream)

    def do_busy(self, stream: int, busy: int) -> None:
        if busy:
            self.held.setdefault(stream, [])
            return
        for event in self.held.pop(stream, []):
            event["done"] = True

    def do_empty(self) -> None:
        self.release_cached()

    def do_pool(self, name: str, no_split: int, use_on_oom: int) -> None:
        self.kinds[name] = (len(self.kinds) + 1, bool(no_split), bool(use_on_oom))
        self.users[self.kinds[name][0]] = 1

    def do_enter(self, name: str) -> None:
        self.inside.append(name)
        self.users[self.kinds[name][0]] += 1

    def do_exit(self, name: str) -> None:
        del self.inside[len(self.inside) - 1 - self.inside[::-1].index(name)]
        self.users[self.kinds[name][0]] -= 1

    # ---- asking

    def rounded(self, size: int) -> int:
        if size < 512:
            return 512
        if self.divisions > 1 and size > 512 * self.divisions:
            power = 1 << (size.bit_length() - 1)
            if power == size:
                return size
            step = power // self.divisions
            return (size + step - 1) // step * step
        return (size + 511) // 512 * 512

    def malloc(self, size: int, stream: int) -> Piece:
        self.process()
        want = self.rounded(size)
        small = want <= MIB
        pool = self.kinds[self.inside[-1]][0] if self.inside else 0
        area, piece = self.search(want, stream, pool, small) or self.grow(want, stream, pool, small)
        rest = piece.size - want
        no_split = any(number == area.pool and whole for number, whole, _ in self.kinds.values())
        if not no_split and (rest >= 512 if small else want < self.max_split and rest > MIB):
            place = area.pieces.index(piece)
            tail = Piece(piece.at + want, rest, requested=piece.requested, since=self.clock(area))
            area.pieces.insert(place + 1, tail)
            piece.size = want
        piece.state, piece.requested = "active_allocated", size
        return piece

    def clock(self, area: Area) -> int:
        return self.searches.get((area.pool, area.small), 0)

    def free_pieces(self, pool: int, small: bool, stream: int | None = None) -> list[tuple[Area, Piece]]:
        """The free blocks of a pool by stream, size and address."""
        found = [
            (area, piece)
            for area in self.areas
            for piece in area.pieces
            if piece.is_free and (area.pool, area.small) == (pool, small) and stream in (None, area.stream)
        ]
        return sorted(found, key=lambda pair: (pair[0].stream, pair[1].size, pair[1].at))

    def search(self, want: int, stream: int, pool: int, small: bool) -> tuple[Area, Piece] | None:
        if self.limit is not None and self.threshold > 0:
            self.searches[pool, small] = self.searches.get((pool, small), 0) + 1
        for area, piece in self.free_pieces(pool, small, stream):
            if piece.size >= want:
                too_large = want < self.max_split <= piece.size
                too_loose = want >= self.max_split and piece.size >= want + self.rounding
                return None if too_large or too_loose else (area, piece)
        return None

    def grow(self, want: int, stream: int, pool: int, small: bool) -> tuple[Area, Piece]:
        segment = (
            2 * MIB if small else self.large_segment if want < 10 * MIB else (want + 2 * MIB - 1) // MIB // 2 * 2 * MIB
        )
        self.collect_garbage()
        if found := self.ask(segment, stream, pool, small):
            return found
        if pool == 0:
            for number, _, lends in self.kinds.values():
                if lends and self.users[number] and (found := self.search(want, stream, number, small)):
                    return found
        if self.release_available(want, stream, pool, small) and (found := self.ask(segment, stream, pool, small)):
            return found
        self.release_cached()
        self.counts["num_alloc_retries"] += 1
        if found := self.ask(segment, stream, pool, small):
            return found
        self.counts["num_ooms"] += 1
        raise NoMemory

    def reserved(self) -> int:
        return sum(area.size for area in self.areas)

    def ask(self, segment: int, stream: int, pool: int, small: bool) -> tuple[Area, Piece] | None:
        held = self.reserved()
        if held + segment > self.total or (self.limit is not None and held + segment > self.limit):
            return None
        at = (self.next + 2 * MIB - 1) // (2 * MIB) * 2 * MIB
        self.next = at + segment
        piece = Piece(at, segment)
        area = Area(at, segment, small, stream, pool, [piece])
        self.areas.append(area)
        self.counts["num_device_alloc"] += 1
        return area, piece

    # ---- giving back

    def area_of(self, piece: Piece) -> Area:
        return next(area for area in self.areas if piece in area.pieces)

    def complete(self, piece: Piece) -> None:
        area = self.area_of(piece)
        place = area.pieces.index(piece)
        piece.state, piece.since = "inactive", self.clock(area)
        if place + 1 < len(area.pieces) and area.pieces[place + 1].is_free:
            piece.size += area.pieces.pop(place + 1).size
        if place and area.pieces[place - 1].is_free:
            before = area.pieces.pop(place - 1)
            piece.at, piece.size = before.at, piece.size + before.size

    def process(self) -> None:
        for queue in self.queues.values():
            while queue and queue[0][0]["done"]:
                self.passed(queue.pop(0)[1])

    def passed(self, piece: Piece) -> None:
        piece.awaited -= 1
        if not piece.awaited:
            self.complete(piece)

    def release(self, area: Area) -> int:
        self.areas.remove(area)
        self.counts["num_device_free"] += 1
        return area.size

    def whole(self, pool: int, small: bool) -> list[tuple[Area, Piece]]:
        return [(area, piece) for area, piece in self.free_pieces(pool, small) if len(area.pieces) == 1]

    def release_cached(self) -> None:
        self.counts["num_sync_all_streams"] += 1
        for queue in self.queues.values():
            while queue:
                event, piece = queue.pop(0)
                event["done"] = True
                self.passed(piece)
        unused = [number for number, users in self.users.items() if not users]
        for pool in (0, *unused):
            for small in (False, True):
                for area, _ in self.whole(pool, small):
                    self.release(area)

    def release_available(self, want: int, stream: int, pool: int, small: bool) -> bool:
        if self.max_split >= 1 << 70:
            return False
        need = max(want, self.max_split)
        mine = self.free_pieces(pool, small, stream)
        for area, piece in mine:
            if piece.size >= need:
                return self.release(area) >= need
        released = 0
        for area, piece in reversed(mine):
            if released >= need or piece.size < self.max_split:
                break
            released += self.release(area)
        return released >= need

    def collect_garbage(self) -> None:
        if self.limit is None or not self.threshold:
            return
        target, released = self.reserved() - int(self.threshold * self.limit), 0
        while target > 0 and released < target:
            candidates = self.whole(0, False)
            now = self.searches.get((0, False), 0)
            if not candidates:
                return
            average = sum(now - piece.since for _, piece in candidates) / len(candidates)
            old = [area for area, piece in candidates if now - piece.since >= average]
            if not old:
                return
            released += sum(map(self.release, old))

    def result(self) -> dict[str, Any]:
        """Addresses, segments and counters, as a trace's replay gives them."""
        segments = [
            {
                "at": str(area.at),
                "pool": area.pool,
                "stream": area.stream,
                "type": "small" if area.small else "large",
                "blocks": [[p.size, None if p.is_free else p.requested, p.state] for p in area.pieces],
            }
            for area in sorted(self.areas, key=lambda area: area.at)
        ]
        return {"addresses": self.where, "segments": segments, "counts": self.counts}
