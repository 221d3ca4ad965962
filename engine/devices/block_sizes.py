"""How the caching allocator rounds a request, and how large a segment it opens for it."""

from __future__ import annotations

from stridescope.engine.devices.allocator_settings import MIB, POWER_OF_TWO_INTERVALS, AllocatorSettings

MINIMUM_BLOCK = 512
SMALL_SIZE = MIB
SMALL_BUFFER = 2 * MIB
MINIMUM_LARGE_ALLOCATION = 10 * MIB
ROUND_LARGE = 2 * MIB
ONE_EXABYTE = 1 << 60


def round_size(size: int, settings: AllocatorSettings) -> int:
    """Round a request up to the size of the block that serves it."""
    if size < MINIMUM_BLOCK:
        return MINIMUM_BLOCK
    if settings.rounds_to_divisions:
        divisions = settings.roundup_power2_divisions[interval_of(size)]
        if divisions > 1 and size > MINIMUM_BLOCK * divisions:
            return round_to_division(size, divisions)
    return -(-size // MINIMUM_BLOCK) * MINIMUM_BLOCK


def interval_of(size: int) -> int:
    """The power-of-two interval of a size: 0 for everything under 2 MiB, 15 from 32 GiB on."""
    return min(max(size.bit_length() - 21, 0), POWER_OF_TWO_INTERVALS - 1)


def round_to_division(size: int, divisions: int) -> int:
    """Round up to one of ``divisions`` equal steps between two powers of two."""
    power = 1 << (size.bit_length() - 1)
    if power == size:
        return size
    step = power // divisions
    return -(-size // step) * step if step else power * 2


def segment_size(rounded: int, settings: AllocatorSettings) -> int:
    """The size of the segment that is asked of the device when no cached block serves."""
    if rounded <= SMALL_SIZE:
        return SMALL_BUFFER
    if rounded < MINIMUM_LARGE_ALLOCATION:
        return settings.large_segment_size
    return -(-rounded // ROUND_LARGE) * ROUND_LARGE
