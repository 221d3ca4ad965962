"""``PYTORCH_CUDA_ALLOC_CONF``: the options of the caching allocator, read from text with PyTorch's errors.

The text is a list of ``key:value`` items. :class:`Tokens` cuts it as PyTorch does, :class:`AllocatorSettings` holds
the values, and the table ``READERS`` says once how each key is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable

MIB = 1 << 20
UNLIMITED = (1 << 64) - 1
POWER_OF_TWO_INTERVALS = 16

_WORD = (1 << 64) - 1
_TOKEN = re.compile(r"[,:\[\]]|[^,:\[\]]+")
_UNSIGNED = re.compile(r"([+-]?)(\d+)")
_FLOATING = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?|nan)", re.IGNORECASE)


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _assertion(failed: str, place: str, text: str) -> RuntimeError:
    where = f'INTERNAL ASSERT FAILED at "/__w/pytorch/pytorch/c10/core/{place}'
    return RuntimeError(f"{failed} {where}, please report a bug to PyTorch. {text}")


def _out_of_bounds(line: int) -> RuntimeError:
    text = "Index out of bounds in ConfigTokenizer"
    return _assertion("i < config_.size()", f'AllocatorConfig.h":{line}', text)


def _unclosed() -> RuntimeError:
    text = "Expected closing bracket ']' in ConfigTokenizer but reached end of config"
    return _assertion("i < tokenizer.size()", 'AllocatorConfig.cpp":211', text)


class Tokens:
    """The text cut at ``, : [ ]``, without blanks, and PyTorch's ways to read one token."""

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = _TOKEN.findall("".join(text.split()))

    def __len__(self) -> int:
        return len(self.tokens)

    def text(self, index: int, line: int = 124) -> str:
        """The token at ``index``; past the end it is PyTorch's internal assert at that line of its source."""
        if index >= len(self.tokens):
            raise _out_of_bounds(line)
        return self.tokens[index]

    def unsigned(self, index: int) -> int:
        """A number as C++ ``stoull`` reads it: trailing text is ignored, a minus sign wraps."""
        found = _UNSIGNED.match(self.text(index))
        if found is None:
            raise ValueError("stoull")
        number = int(found[2])
        if number > _WORD:
            raise IndexError("stoull")
        return -number & _WORD if found[1] == "-" else number

    def floating(self, index: int) -> float:
        """A number as C++ ``stod`` reads it."""
        found = _FLOATING.match(self.text(index))
        if found is None:
            raise ValueError("stod")
        return float(found[0])

    def boolean(self, index: int) -> bool:
        """Exactly ``True`` or ``False``."""
        token = self.text(index)
        if token not in ("True", "False"):
            raise ValueError(f"Expected 'True' or 'False' at index {index} in ConfigTokenizer but got '{token}'")
        return token == "True"


class AllocatorSettings:
    """The options in force. ``parse`` applies a text; ``text`` is the last one, whether it was good or not."""

    def __init__(self, text: str = "", source: str = "CUDA") -> None:
        self.text = ""
        self.large_segment_size = 20 * MIB
        self.expandable_segments = False
        self.throw_on_cudamalloc_oom = False
        self.per_process_memory_fraction = 1.0
        self.release_lock_on_cudamalloc = False
        self.graph_capture_record_stream_reuse = False
        self.pinned_use_cuda_host_register = False
        self.pinned_use_background_threads = False
        self.pinned_free_catch_all = False
        self.pinned_num_register_threads = 1
        self.pinned_reserve_segment_size = 0
        self.pinned_max_round_threshold = UNLIMITED
        self.pinned_max_cached_size = UNLIMITED
        self._reset_transient()
        if text:
            self.parse(text, source)

    def _reset_transient(self) -> None:
        """Four options fall back to their defaults with every text."""
        self.max_split_size = UNLIMITED
        self.max_non_split_rounding: int | None = None
        self.garbage_collection_threshold = 0.0
        self.roundup_power2_divisions = [0] * POWER_OF_TWO_INTERVALS
        self.rounds_to_divisions = False  # whether any interval has divisions: asked for every request

    @property
    def non_split_rounding(self) -> int:
        """How much larger than the request an oversize block may be."""
        if self.max_non_split_rounding is None:
            return self.large_segment_size
        return self.max_non_split_rounding

    def parse(self, text: str, source: str = "Accelerator") -> None:
        """Apply ``text`` from left to right; items before a failing one stay applied."""
        self._reset_transient()
        self.text = text
        tokens = Tokens(text)
        index = 0
        try:
            while index < len(tokens):
                key = tokens.text(index)
                reader = READERS.get(key)
                if reader is None:
                    raise ValueError(f"Unrecognized key '{key}' in {source} allocator config.")
                # The separators before and after the value are skipped unseen, as PyTorch does.
                index = reader(self, tokens, index + 2) + 2
        finally:
            self.rounds_to_divisions = any(divisions > 1 for divisions in self.roundup_power2_divisions)

    def as_snapshot(self) -> dict[str, object]:
        """The ``allocator_settings`` of a memory snapshot."""
        divisions = {str(1 << power): value for power, value in enumerate(self.roundup_power2_divisions)}
        return {
            "PYTORCH_CUDA_ALLOC_CONF": self.text,
            "max_split_size": as_signed(self.max_split_size),
            "garbage_collection_threshold": self.garbage_collection_threshold,
            "expandable_segments": self.expandable_segments,
            "pinned_num_register_threads": self.pinned_num_register_threads,
            "release_lock_on_cudamalloc": self.release_lock_on_cudamalloc,
            "pinned_use_cuda_host_register": self.pinned_use_cuda_host_register,
            "graph_capture_record_stream_reuse": self.graph_capture_record_stream_reuse,
            "max_round_threshold": as_signed(self.pinned_max_round_threshold),
            "max_cached_size": as_signed(self.pinned_max_cached_size),
            "roundup_power2_divisions": divisions,
        }


def as_signed(word: int) -> int:
    """A 64-bit word as the signed number that PyTorch shows: -1 for "unlimited"."""
    return word - (1 << 64) if word >> 63 else word


Reader = Callable[[AllocatorSettings, Tokens, int], int]


def _megabytes(name: str, value: int, least: int) -> int:
    if value < least:
        raise ValueError(f"CachingAllocator option {name} too small, must be >= {least}")
    return min(value, _WORD // MIB) * MIB


def _max_split_size(settings: AllocatorSettings, tokens: Tokens, index: int) -> int:
    least = settings.large_segment_size // MIB
    settings.max_split_size = _megabytes("max_split_size_mb", tokens.unsigned(index), least)
    return index


def _max_non_split_rounding(settings: AllocatorSettings, tokens: Tokens, index: int) -> int:
    least = settings.large_segment_size // MIB
    settings.max_non_split_rounding = _megabytes("max_non_split_rounding_mb", tokens.unsigned(index), least)
    return index


def _garbage_collection_threshold(settings: AllocatorSettings, tokens: Tokens, index: int) -> int:
    value = tokens.floating(index)
    if not 0.0 < value < 1.0:
        raise ValueError("garbage_collect_threshold is invalid, set it in (0.0, 1.0)")
    settings.garbage_collection_threshold = value
    return index


def _per_process_memory_fraction(settings: AllocatorSettings, tokens: Tokens, index: int) -> int:
    value = tokens.floating(index)
    if not 0.0 <= value <= 1.0:
        raise ValueError("per_process_memory_fraction is invalid, set it in [0.0, 1.0]")
    settings.per_process_memory_fraction = value
    return index


def _large_segment_size(settings: AllocatorSettings, tokens: Tokens, index: int) -> int:
    value = tokens.unsigned(index)
    if value <= 10:
        raise ValueError("CachingAllocator option large_segment_size_mb must be > 10 MB")
    settings.large_segment_size = value * MIB
    return index


def _roundup_power2_divisions(settings: AllocatorSettings, tokens: Tokens, index: int) -> int:
    if tokens.text(index, 55) == "[":
        return _roundup_list(settings.roundup_power2_divisions, tokens, index + 1)
    value = tokens.unsigned(index)
    if not _is_power_of_two(value):
        raise ValueError("For roundups, the divisions has to be power of 2 ")
    settings.roundup_power2_divisions = [value] * POWER_OF_TWO_INTERVALS
    return index


def _roundup_list(divisions: list[int], tokens: Tokens, index: int) -> int:
    """Read ``size:division, …, >:division]``; the first size also fills all smaller intervals."""
    first, last = True, 0
    while index < len(tokens) and tokens.text(index) != "]":
        size, value = index, tokens.unsigned(index + 2)
        if value and not _is_power_of_two(value):
            raise ValueError("For roundups, the divisions has to be power of 2 or 0 to disable roundup ")
        if tokens.text(size) == ">":
            divisions[last + 1 :] = [value] * (POWER_OF_TWO_INTERVALS - last - 1)
        else:
            last = _interval_of(tokens.unsigned(size))
            divisions[: last + 1] = [value] * (last + 1) if first else [*divisions[:last], value]
            first = False
        index += 3
        if tokens.text(index, 55) != "]":
            index += 1
    if index >= len(tokens):
        raise _unclosed()
    return index


def _interval_of(boundary: int) -> int:
    if not _is_power_of_two(boundary):
        raise ValueError("For roundups, the intervals have to be power of 2 ")
    return min(boundary.bit_length() - 1, POWER_OF_TWO_INTERVALS - 1)


def _pinned_num_register_threads(settings: AllocatorSettings, tokens: Tokens, index: int) -> int:
    value = tokens.unsigned(index)
    if not _is_power_of_two(value):
        raise ValueError(f"Number of register threads has to be power of 2, got {value}")
    if value > 128:
        raise ValueError(f"Number of register threads should be less than or equal to 128, got {value}")
    settings.pinned_num_register_threads = value
    return index


def _pinned_reserve_segment_size(settings: AllocatorSettings, tokens: Tokens, index: int) -> int:
    value = tokens.unsigned(index)
    if value == 0:
        raise ValueError("Pinned reserve segment size has to be greater than 0")
    settings.pinned_reserve_segment_size = value * MIB
    return index


def _backend(settings: AllocatorSettings, tokens: Tokens, index: int) -> int:
    del settings  # the native backend is the one that is modelled here
    name = tokens.text(index)
    if name == "cudaMallocAsync":
        raise ValueError("the cudaMallocAsync backend is not modelled here: use backend:native")
    if name != "native":
        raise ValueError("Unknown allocator backend, options are native and cudaMallocAsync")
    return index


def _flag(attribute: str) -> Reader:
    def read(settings: AllocatorSettings, tokens: Tokens, index: int) -> int:
        setattr(settings, attribute, tokens.boolean(index))
        return index

    return read


def _size(attribute: str) -> Reader:
    def read(settings: AllocatorSettings, tokens: Tokens, index: int) -> int:
        setattr(settings, attribute, min(tokens.unsigned(index), _WORD // MIB) * MIB)
        return index

    return read


READERS: dict[str, Reader] = {
    "backend": _backend,
    "expandable_segments": _flag("expandable_segments"),
    "garbage_collection_threshold": _garbage_collection_threshold,
    "graph_capture_record_stream_reuse": _flag("graph_capture_record_stream_reuse"),
    "large_segment_size_mb": _large_segment_size,
    "max_non_split_rounding_mb": _max_non_split_rounding,
    "max_split_size_mb": _max_split_size,
    "per_process_memory_fraction": _per_process_memory_fraction,
    "pinned_free_catch_all": _flag("pinned_free_catch_all"),
    "pinned_max_cached_size_mb": _size("pinned_max_cached_size"),
    "pinned_max_round_threshold_mb": _size("pinned_max_round_threshold"),
    "pinned_num_register_threads": _pinned_num_register_threads,
    "pinned_reserve_segment_size_mb": _pinned_reserve_segment_size,
    "pinned_use_background_threads": _flag("pinned_use_background_threads"),
    "pinned_use_cuda_host_register": _flag("pinned_use_cuda_host_register"),
    "pinned_use_hip_host_register": _flag("pinned_use_cuda_host_register"),
    "release_lock_on_cudamalloc": _flag("release_lock_on_cudamalloc"),
    "release_lock_on_hipmalloc": _flag("release_lock_on_cudamalloc"),
    "roundup_power2_divisions": _roundup_power2_divisions,
    "throw_on_cudamalloc_oom": _flag("throw_on_cudamalloc_oom"),
}
