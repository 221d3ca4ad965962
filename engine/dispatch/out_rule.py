"""How an op takes ``out=``, as its declaration says it."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Any

from stridescope.engine.dtype import dtype
from stridescope.engine.tensor import Tensor


class Gradients(enum.Enum):
    """What ``out=`` may do where gradients are recorded."""

    REFUSED = "neither out nor what the op reads may require grad"
    FREE = "the results have no gradient, so that any of them may"
    LEAVES = "autograd does not know the op: only leaves that require grad may not be written"


@dataclasses.dataclass(frozen=True)
class Out:
    """How an op takes ``out=``, where that is not what most ops do.

    Attributes:
        into: what is written where that is not the plain form's result: a function of the arguments and the tensor.
        counts: how many writes PyTorch's version counter shows; of the third of several results, ``counts_third``.
        memory_first: an expanded ``out`` is refused before it is resized, as all elementwise ops do it.
        apart: ``out`` may not be among what the op reads, nor share its storage.
        dtype_at_once: the dtype that ``out`` must have, asked before anything else; a function of the arguments.
        dtype_first: the dtype of ``out`` is asked before the kernel refuses anything, but for texts that begin so.
        own_dtype: a reduction or range that computes in the dtype of ``out`` where none is asked for.
        factory: makes a tensor from nothing: a ``dtype`` has to be that of ``out``.
        casts: whether any dtype will do that the result can be cast to; a function of the arguments.
        gradients: what may require grad.
    """

    into: Callable[..., Any] | None = None
    counts: int = 1
    counts_third: int = 1
    memory_first: bool = False
    apart: bool = False
    dtype_at_once: Callable[..., dtype] | None = None
    dtype_first: tuple[str, ...] | None = None
    own_dtype: bool = False
    factory: bool = False
    casts: Callable[..., bool] | None = None
    gradients: Gradients = Gradients.REFUSED


USUAL = Out()
FREE = Out(gradients=Gradients.FREE)
LEAVES = Out(gradients=Gradients.LEAVES)
FACTORY = Out(factory=True, gradients=Gradients.LEAVES)
RANGE = Out(own_dtype=True, factory=True, gradients=Gradients.LEAVES)


def own_dtype(first: Tensor, *_rest: Any) -> dtype:
    """The dtype of the first argument."""
    return first.dtype
