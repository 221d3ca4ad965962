"""PyTorch's CPU random stream: the Mersenne Twister, and how its words become numbers.

A word of 32 bits gives a float of 24 bits; two words, the first the higher, give a double of 53 bits. Normal numbers
come in pairs by Box and Muller; where they are drawn one by one, the second of a pair waits for the next call.

All streams follow PyTorch's kernels for x86 without MKL's own generators: with MKL on an Intel processor, PyTorch
draws ``bernoulli_`` with a number p and ``exponential_`` from another generator, which this does not imitate.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from stridescope.engine.kernels.box_muller import boxed

Values = np.ndarray[Any, Any]
DEFAULT_SEED = 67280421310721
WORDS = 624
STATE_BYTES = 5056
_HEAD = struct.Struct("<QiiQ")
_TAIL = struct.Struct("<dddi4xfB3x")
_FLOAT_BITS, _DOUBLE_BITS = 24, 53


class Stream:
    """A generator's state: the twister, the seed it began with, and the normal number that waits."""

    def __init__(self, seed: int = DEFAULT_SEED) -> None:
        self.seed_with(seed)

    def seed_with(self, seed: int) -> None:
        """Begin anew; only the low 32 bits of the seed reach the twister."""
        self.seed = seed & 0xFFFFFFFFFFFFFFFF
        self.twister = np.random.MT19937()
        self.twister._legacy_seeding(self.seed & 0xFFFFFFFF)
        self.waiting: float | None = None

    def words(self, count: int) -> Values:
        """The next words, as uint64."""
        return self.twister.random_raw(count)

    def word(self) -> int:
        """The next word."""
        return int(self.twister.random_raw())

    def wide(self, count: int) -> Values:
        """Numbers of 64 bits, each of two words."""
        words = self.words(2 * count)
        return (words[0::2] << np.uint64(32)) | words[1::2]

    def floats(self, count: int) -> Values:
        """float32 numbers in [0, 1)."""
        mask = np.uint64((1 << _FLOAT_BITS) - 1)
        return (self.words(count) & mask).astype(np.float32) * np.float32(2.0**-_FLOAT_BITS)

    def doubles(self, count: int) -> Values:
        """float64 numbers in [0, 1)."""
        mask = np.uint64((1 << _DOUBLE_BITS) - 1)
        return (self.wide(count) & mask).astype(np.float64) * 2.0**-_DOUBLE_BITS

    def normals(self, count: int) -> Values:
        """Standard normal float64 numbers, drawn one by one."""
        found = np.empty(count, np.float64)
        start = 0
        if self.waiting is not None and count:
            found[0], self.waiting, start = self.waiting, None, 1
        pairs = (count - start + 1) // 2
        uniform = self.doubles(2 * pairs)
        radius = np.sqrt(-2.0 * np.log1p(-uniform[1::2]))
        angle = 2.0 * np.pi * uniform[0::2]
        both = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1)
        found[start:] = both[: count - start]
        if (count - start) % 2:
            self.waiting = float(both[-1])
        return found

    def normal_block(self, count: int, kind: Any, mean: float = 0.0, std: float = 1.0, small: bool = False) -> Values:
        """Normal numbers of a dense tensor of 16 elements or more: in groups of 16, cosines then sines.

        When the count is no multiple of 16, the last 16 elements are drawn anew. For ``small`` dtypes (float16 and
        bfloat16) the rest that does not fill a group is not even drawn before that.
        """
        draw = self.doubles if kind == np.float64 else self.floats
        whole = count // 16 * 16
        found = np.empty(count, kind)
        found[:whole] = boxed(draw(whole), mean, std)
        if count != whole:
            if not small:
                draw(count - whole)
            found[count - 16 :] = boxed(draw(16), mean, std)
        return found

    # ---- the state as bytes, in PyTorch's layout -------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The state as ``torch.get_rng_state`` gives it."""
        state = self.twister.state["state"]
        position = int(state["pos"])
        left, following = (1, 0) if position == WORDS and not self._begun() else (WORDS + 1 - position, position)
        head = _HEAD.pack(self.seed, left, 1, following)
        waiting = self.waiting
        tail = _TAIL.pack(0.0, 0.0 if waiting is None else waiting, 0.0, waiting is not None, 0.0, 0)
        return head + state["key"].astype("<u8").tobytes() + tail

    def _begun(self) -> bool:
        fresh = np.random.MT19937()
        fresh._legacy_seeding(self.seed & 0xFFFFFFFF)
        return not np.array_equal(fresh.state["state"]["key"], self.twister.state["state"]["key"])

    def from_bytes(self, data: bytes) -> None:
        """Take up a state that ``to_bytes`` gave; raises RuntimeError for a wrong length."""
        if len(data) != STATE_BYTES:
            raise RuntimeError("RNG state is wrong size")
        self.seed, left, _, following = _HEAD.unpack_from(data)
        key = np.frombuffer(data, "<u8", WORDS, _HEAD.size).astype(np.uint32)
        self.twister = np.random.MT19937()
        position = WORDS if left == 1 else following
        self.twister.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": position}}
        _, waiting, _, valid, _, _ = _TAIL.unpack_from(data, _HEAD.size + 8 * WORDS)
        self.waiting = waiting if valid else None
