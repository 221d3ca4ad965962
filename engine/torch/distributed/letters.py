"""What single ranks send each other: messages of one tag arrive in the order in which they were sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import timedelta

from stridescope.engine.torch.distributed.mesh import Mesh, Message

Tag = int | str


class Letters:
    """The messages between the ranks of a group, which are numbered for each pair of ranks and each tag."""

    def __init__(self, mesh: Mesh, ranks: Sequence[int], name: str) -> None:
        self._mesh, self._ranks, self._name = mesh, ranks, name
        self._sent: defaultdict[tuple[int, Tag], int] = defaultdict(int)
        self._taken: defaultdict[tuple[int, Tag], int] = defaultdict(int)

    def _key(self, tag: Tag, number: int) -> str:
        return f"{self._name}/p/{tag}/{number}"

    def send(self, rank: int, tag: Tag, message: Message) -> None:
        """Send a rank of the group a message."""
        number = self._sent[rank, tag]
        self._sent[rank, tag] += 1
        self._mesh.send(self._ranks[rank], self._key(tag, number), message)

    def expect(self, rank: int, tag: Tag) -> tuple[Callable[[], bool], Callable[[timedelta], tuple[int, Message]]]:
        """The next message of a rank: whether it is there, and how to wait for it."""
        key, source = self._key(tag, self._taken[rank, tag]), self._ranks[rank]
        self._taken[rank, tag] += 1
        return lambda: self._mesh.has(source, key), lambda left: (rank, self._mesh.receive(source, key, left))

    def expect_any(self, tag: Tag) -> tuple[Callable[[], bool], Callable[[timedelta], tuple[int, Message]]]:
        """The same for the message that comes first from whichever rank."""
        places = {source: rank for rank, source in enumerate(self._ranks) if source != self._mesh.rank}

        def key(source: int) -> str:
            return self._key(tag, self._taken[places[source], tag])

        def take(timeout: timedelta) -> tuple[int, Message]:
            source, message = self._mesh.receive_any(key, list(places), timeout)
            self._taken[places[source], tag] += 1
            return places[source], message

        return lambda: any(self._mesh.has(source, key(source)) for source in places), take
