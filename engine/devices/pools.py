"""The default pools, the private ones, and which of them a request goes to."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from stridescope.engine.devices.allocator_stats import AllocatorStats
from stridescope.engine.devices.block import Block, BlockPool, PoolId, PrivatePool

DEFAULT_POOL: PoolId = (0, 0)


@dataclasses.dataclass(slots=True)
class Route:
    """While it is open, the requests that ``accepts`` says yes to (by stream) go to a private pool."""

    pool_id: PoolId
    accepts: Callable[[int], bool]


class Pools:
    """All pools of one device's allocator."""

    def __init__(self, stats: AllocatorStats) -> None:
        self._stats = stats
        self.small = BlockPool(True, stats.of(True))
        self.large = BlockPool(False, stats.of(False))
        self.private: dict[PoolId, PrivatePool] = {}
        self.freeable: dict[PoolId, PrivatePool] = {}
        self.routes: list[Route] = []

    def choose(self, is_small: bool, stream: int) -> BlockPool:
        """The innermost open private pool that accepts, else the default one."""
        owner: Pools | PrivatePool = self
        for route in reversed(self.routes):
            if route.accepts(stream):
                owner = self.private[route.pool_id]
                break
        return owner.small if is_small else owner.large

    def use(self, pool_id: PoolId) -> PrivatePool:
        """Make a private pool, or add a user to it."""
        if pool_id in self.private:
            self.freeable.pop(pool_id, None)
            self.private[pool_id].use_count += 1
        else:
            self.private[pool_id] = PrivatePool(pool_id, self._stats)
        return self.private[pool_id]

    def release(self, pool_id: PoolId) -> None:
        """Take a user away; a pool without users may give its memory back."""
        pool = self.private[pool_id]
        pool.use_count -= 1
        if pool.use_count == 0:
            self.freeable[pool_id] = pool

    def open_route(self, pool_id: PoolId, accepts: Callable[[int], bool]) -> None:
        """Send matching requests to a private pool from now on."""
        self.routes.append(Route(pool_id, accepts))

    def close_route(self, pool_id: PoolId) -> None:
        """Undo the innermost ``open_route`` of the pool."""
        for index in reversed(range(len(self.routes))):
            if self.routes[index].pool_id == pool_id:
                del self.routes[index]
                return
        raise RuntimeError("endAllocatePool: not currently recording to mempool_id")

    def forget(self, pool_id: PoolId) -> None:
        """Drop a private pool that owns nothing any more."""
        del self.freeable[pool_id], self.private[pool_id]

    def lenders(self) -> list[PrivatePool]:
        """The private pools that help out when the device is full; pools without users no longer do."""
        return [pool for pool in self.private.values() if pool.use_on_oom and pool.use_count]

    def private_free_bytes(self) -> int:
        """The free memory that private pools hold."""
        return sum(pool.free_bytes for pool in self.private.values())

    def everything(self) -> list[BlockPool]:
        """Every small and large pool."""
        private = [half for pool in self.private.values() for half in (pool.small, pool.large)]
        return [self.small, self.large, *private]

    def free_blocks(self) -> list[Block]:
        """Every cached block of every pool."""
        return [block for pool in self.everything() for block in pool.blocks()]
