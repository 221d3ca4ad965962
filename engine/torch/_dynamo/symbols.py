"""The names of sizes that may change: a number that their place gives, as PyTorch numbers them."""

from __future__ import annotations

import hashlib
import re


class SymInt:
    """The type of a graph's input that is a size."""

    __module__ = "torch"


def symbol_of(source: str, dim: int, taken: set[int]) -> str:
    """The symbol of a dimension of an input, such as ``s77``; ``taken`` are the numbers that others have.

    The number is the last two decimal digits of the SHA-256 of what the size is read from.
    """
    place = re.match(r"([LG])_(.+)_$", source)
    variable = f"{place[1]}['{place[2]}']" if place else source
    number = int(hashlib.sha256(f"{variable}.size()[{dim}]".encode()).hexdigest(), 16) % 100
    while number in taken:
        number += 1
    taken.add(number)
    return f"s{number}"
