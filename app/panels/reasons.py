"""The caching allocator's reasons in the reader's language, with sizes as people say them."""

from __future__ import annotations

import re
import string

from stridescope.app.text import tr
from stridescope.app.values import sizes_in_words

# What the allocator says of a free block, of a cut and of the device; {a} and {b} stand for its numbers.
REASONS = (
    "chosen: it has less room to grow",
    "chosen: the smallest that is large enough",
    "chosen: the smallest that is not expandable",
    "garbage collection: {a} bytes given back",
    "cache released: {a} bytes given back",
    "it belongs to stream {a}, the request to stream {b}",
    "it is expandable, and expandable_segments is off",
    "not split: blocks of max_split_size ({a} bytes) and more are not cut",
    "not split: it fits exactly",
    "not split: the pool does not split",
    "not split: {a} bytes would be left; they are a block of their own only above {b} bytes",
    "not split: {a} bytes would be left; they are a block of their own only from {b} bytes on",
    "oversize blocks released: {a} bytes given back",
    "passed over: it can still grow to {a} bytes",
    "refused: at {a} bytes or more it is kept whole for requests of that size",
    "refused: it exceeds the request by {a} bytes or more, and may not be cut",
    "split: {a} bytes are left, a block of their own above {b} bytes",
    "split: {a} bytes are left, a block of their own from {b} bytes on",
    "the device gives no segment of {a} bytes: out of memory",
    "the device gives no segment of {a} bytes: the process may hold {b} bytes",
    "too small by {a} bytes",
)
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")


def in_words(reason: str) -> str:
    """Return a reason to be read; one that has no translation stays as it is."""
    numbers = _NUMBER.findall(reason)
    names = iter(string.ascii_lowercase)
    template = _NUMBER.sub(lambda _found: f"{{{next(names)}}}", reason)
    if template in REASONS:
        reason = tr(template, **dict(zip(string.ascii_lowercase, numbers, strict=False)))
    return sizes_in_words(reason)
