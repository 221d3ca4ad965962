"""Elementwise kernels that are made for some dtypes only, and say so as PyTorch does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from stridescope.engine.dispatch.promote import common
from stridescope.engine.dispatch.run import Pointwise, Strides
from stridescope.engine.dtype import dtype, scalar_name
from stridescope.engine.layout import broadcast_shapes
from stridescope.engine.storage import Array

LETTERS = "bifc"  # bool, integer, floating point, complex: the categories of a dtype
Refusal = tuple[type[Exception], str]


def not_implemented(label: str, kind: dtype) -> NotImplementedError:
    """What PyTorch raises when a kernel was not made for a dtype."""
    return NotImplementedError(f"\"{label}\" not implemented for '{scalar_name(kind)}'")


class Choosy(Pointwise):
    """A pointwise kernel with a list of the categories it takes.

    Args:
        label: the kernel's name in the error.
        takes: letters out of ``bifc``.
        refuse: special errors by letter, for ops that check before the kernel does.
        halves: whether it takes float16 and bfloat16.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        label: str,
        takes: str,
        refuse: Mapping[str, Refusal] | None,
        halves: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(function, **options)
        self.halves = halves
        self.label, self.takes, self.refuse = label, takes, dict(refuse or {})
        self.quick = frozenset(kind for kind in self.quick if LETTERS[kind.category] in takes)
        self.floats = "f" in takes and "f" not in self.refuse

    def admit(self, *args: Any) -> None:
        """Refuse the categories with errors of their own."""
        if self.refuse:
            error = self.refuse.get(LETTERS[common(args[: self.operands(len(args))], self.to_float).category])
            if error is not None:
                raise error[0](error[1])

    def compute(self, arrays: list[Any], kind: dtype, rest: tuple[Any, ...], sources: list[Any]) -> Array:
        """The result array; raises when the dtype is not one of those that the kernel takes."""
        letter = LETTERS[kind.category]
        if letter in self.refuse:
            error, text = self.refuse[letter]
            raise error(text)
        if letter not in self.takes or not (self.halves or kind.itemsize > 2):
            broadcast_shapes(*(np.shape(a) for a in arrays))  # that these do not match is said first
            raise not_implemented(self.label, kind)
        return super().compute(arrays, kind, rest, sources)


def elementwise(
    function: Callable[..., Any],
    label: str,
    takes: str = LETTERS,
    refuse: Mapping[str, Refusal] | None = None,
    *,
    to_float: bool = False,
    gives: dtype | None = None,
    through: bool = True,
    precise: int | None = None,
    count: int | None = None,
    quick: Callable[..., Any] | None = None,
    strides: Strides | None = None,
    halves: bool = True,
) -> Choosy:
    """The backend part of an elementwise op with its dtypes; see :class:`Choosy` and :class:`Pointwise`."""
    return Choosy(
        function,
        label,
        takes,
        refuse,
        to_float=to_float,
        gives=gives,
        through=through,
        precise=precise,
        count=count,
        quick=quick,
        strides=strides,
        halves=halves,
    )
