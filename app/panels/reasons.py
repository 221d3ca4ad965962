"""The caching allocator's reasons in the reader's language, with sizes as people say them."""

from __future__ import annotations

import re
import string

from stridescope.app.text import tr
from stridescope.app.values import sizes_in_words

# What the allocator says of a free block, of a cut and of the device; {a} and {b} stand for its numbers.
REASONS = (
    "at {a} bytes or more it is kept whole for requests of that size",
    "blocks of max_split_size ({a} bytes) and more are not cut",
    "cache released",
    "chosen: it has less room to grow",
    "chosen: the smallest that is large enough",
    "chosen: the smallest that is not expandable",
    "garbage collection",
    "it belongs to stream {a}, the request to stream {b}",
    "it exceeds the request by {a} bytes or more, and may not be cut",
    "it fits exactly",
    "it is expandable, and expandable_segments is off",
    "out of memory",
    "oversize blocks released",
    "passed over: it can still grow to {a} bytes",
    "the pool does not split",
    "the process may hold {a} bytes",
    "too small by {a} bytes",
    "{a} bytes are left, a block of their own above {b} bytes",
    "{a} bytes are left, a block of their own from {b} bytes on",
    "{a} bytes would be left; they are a block of their own only above {b} bytes",
    "{a} bytes would be left; they are a block of their own only from {b} bytes on",
)
# What is said around a reason; {size} is a number of bytes.
AROUND = (
    "not split: {reason}",
    "refused: {reason}",
    "split: {reason}",
    "the device gives no segment of {size} bytes: {reason}",
    "{reason}: {size} bytes given back",
)
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_AROUND = {
    text: re.compile(re.escape(text).replace(r"\{reason\}", "(?P<reason>.+)").replace(r"\{size\}", r"(?P<size>\d+)"))
    for text in AROUND
}


def in_words(reason: str) -> str:
    """Return a reason to be read; one that has no translation stays as it is."""
    for text, pattern in _AROUND.items():
        if found := pattern.fullmatch(reason):
            parts = found.groupdict()
            return sizes_in_words(tr(text, **{**parts, "reason": _translated(parts["reason"])}))
    return sizes_in_words(_translated(reason))


def _translated(reason: str) -> str:
    numbers = _NUMBER.findall(reason)
    names = iter(string.ascii_lowercase)
    template = _NUMBER.sub(lambda _found: f"{{{next(names)}}}", reason)
    return tr(template, **dict(zip(string.ascii_lowercase, numbers, strict=False))) if template in REASONS else reason
