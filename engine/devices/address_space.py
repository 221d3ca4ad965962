"""The addresses of a simulated GPU: device memory and reserved virtual ranges."""

from __future__ import annotations

from stridescope.engine.devices.device import DeviceOutOfMemory

# Far apart, so that the first digits of an address tell what it is; each device has a stretch of its own.
DEVICE_MEMORY = 0x2000_0000_0000
VIRTUAL_RANGES = 0x5000_0000_0000
DEVICE_STRETCH = 0x0100_0000_0000
ALIGNMENT = 2 << 20
RESERVATION_STEP = 1 << 30


class AddressSpace:
    """Hands out addresses that are never used twice, and counts the memory behind them."""

    def __init__(self, total: int, index: int = 0) -> None:
        self.total = total
        self.used = 0
        self.device_base = DEVICE_MEMORY + index * DEVICE_STRETCH
        self.virtual_base = VIRTUAL_RANGES + index * DEVICE_STRETCH
        self._next_device = self.device_base
        self._next_virtual = self.virtual_base
        self._sizes: dict[int, int] = {}

    @property
    def free(self) -> int:
        """The bytes that are not taken."""
        return self.total - self.used

    def take(self, size: int) -> int:
        """Device memory at the next 2 MiB boundary; raises DeviceOutOfMemory."""
        self.occupy(size)
        address = -(-self._next_device // ALIGNMENT) * ALIGNMENT
        self._next_device = address + size
        self._sizes[address] = size
        return address

    def give_back(self, address: int) -> None:
        """Free what ``take`` gave."""
        self.used -= self._sizes.pop(address)

    def occupy(self, size: int) -> None:
        """Count memory as taken; raises DeviceOutOfMemory."""
        if size > self.free:
            raise DeviceOutOfMemory
        self.used += size

    def vacate(self, size: int) -> None:
        """Count memory as free again."""
        self.used -= size

    def reserve(self, size: int) -> int:
        """A range of virtual addresses without memory."""
        address = self._next_virtual
        self._next_virtual += -(-size // RESERVATION_STEP) * RESERVATION_STEP
        return address
