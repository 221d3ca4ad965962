"""One run for many examples: tensors that stand for all of them, while each op is done for one example after another.

It is how ``torch.vmap`` runs a function once. A stand-in looks like one example (its shape, its strides); what is asked
of it is asked of every example, and gives a stand-in for the answers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from stridescope.engine.tensor import Tensor, alias

_BATCH, _EXAMPLE = "_batch", "_example_of"


class Batch(NamedTuple):
    """What a tensor stands for.

    Attributes:
        level: the run that it belongs to.
        examples: one tensor for each example.
        origin: where they are whole, the tensor and the dim that counts them.
    """

    level: Lockstep
    examples: list[Tensor]
    origin: tuple[Tensor, int] | None = None


class Lockstep:
    """One run: ``count`` examples at once.

    Attributes:
        levels: the runs at work, innermost last.
        busy: this run has stepped aside: what happens now is one example's own affair.
        number: how many transforms are at work with this one, for those who print tensors.
    """

    levels: list[Lockstep] = []

    def __init__(self, count: int) -> None:
        self.count, self.busy, self.number = count, False, 0

    def stand_in(self, examples: list[Tensor], origin: tuple[Tensor, int] | None = None) -> Tensor:
        """A tensor that stands for these."""
        made = alias(examples[0])
        made.__dict__[_BATCH] = Batch(self, examples, origin)
        for example in examples:
            example.__dict__.setdefault(_EXAMPLE, self)
        show(made)
        return made

    def depends(self, value: Any) -> bool:
        """Whether a value is, or holds, a stand-in of this run."""
        if isinstance(value, Tensor):
            batch = value.__dict__.get(_BATCH)
            return batch is not None and batch.level is self
        if isinstance(value, (tuple, list)):
            return any(self.depends(item) for item in value)
        return isinstance(value, dict) and any(self.depends(item) for item in value.values())

    def holds(self, tensor: Tensor) -> bool:
        """Whether this is a stand-in of this run, or one of its examples."""
        return self.depends(tensor) or tensor.__dict__.get(_EXAMPLE) is self

    def follow(self, result: Any, args: Any) -> Any:
        """Know what is computed from an example as such, too."""
        if self._holds_any(args):
            for one in result if isinstance(result, (tuple, list)) else (result,):
                if isinstance(one, Tensor):
                    one.__dict__.setdefault(_EXAMPLE, self)
        return result

    def _holds_any(self, value: Any) -> bool:
        if isinstance(value, (tuple, list)):
            return any(self._holds_any(item) for item in value)
        return isinstance(value, Tensor) and self.holds(value)

    def example(self, value: Any, number: int) -> Any:
        """A value, with one example in the place of each stand-in."""
        if isinstance(value, Tensor):
            batch = value.__dict__.get(_BATCH)
            return batch.examples[number] if batch is not None and batch.level is self else value
        if isinstance(value, dict):
            return {key: self.example(item, number) for key, item in value.items()}
        if isinstance(value, (tuple, list)) and self.depends(value):
            return rebuilt(value, [self.example(item, number) for item in value])
        return value

    def lifted(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call ``function`` for each example; what it gives becomes stand-ins."""
        with_aside = self.aside(lambda: [function(*self.example(args, n)) for n in range(self.count)])
        return self.combined(with_aside)

    def aside(self, function: Callable[[], Any]) -> Any:
        """Call a function while this run has stepped aside."""
        before, self.busy = self.busy, True
        try:
            return function()
        finally:
            self.busy = before

    def combined(self, results: list[Any]) -> Any:
        """The results of all examples as one, with stand-ins for tensors."""
        first = results[0]
        if isinstance(first, Tensor):
            return first if all(one is first for one in results[1:]) and len(results) > 1 else self.stand_in(results)
        if isinstance(first, dict):
            return {key: self.combined([one[key] for one in results]) for key in first}
        if isinstance(first, (tuple, list)):
            return rebuilt(first, [self.combined(list(column)) for column in zip(*results, strict=True)])
        return first


def rebuilt(value: Any, parts: list[Any]) -> Any:
    """A tuple or list of the same type with other items."""
    return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)


def batch_of(tensor: Tensor) -> Batch | None:
    """What the tensor stands for; None when for itself."""
    found: Batch | None = tensor.__dict__.get(_BATCH)
    return found


def show(stand_in: Tensor) -> None:
    """Let a stand-in look like its first example as that is now."""
    first = stand_in.__dict__[_BATCH].examples[0]
    stand_in._array, stand_in._requires_grad, stand_in._node = first._array, first._requires_grad, first._node
    if first._node is not None:
        stand_in._output_nr = first._output_nr


def run_of(value: Any) -> Lockstep | None:
    """The innermost run that the value depends on; None when there is none."""
    return next((level for level in reversed(Lockstep.levels) if not level.busy and level.depends(value)), None)


def peel(function: Callable[..., Any], *args: Any) -> Any:
    """Call ``function`` with tensors that stand for themselves: where some are stand-ins, once for each example."""
    level = run_of(args)
    return function(*args) if level is None else level.lifted(functools.partial(peel, function), *args)


def own(tensors: list[Tensor]) -> list[Tensor]:
    """The tensors, with all examples in the place of stand-ins."""
    found: list[Tensor] = []
    for tensor in tensors:
        batch = batch_of(tensor)
        found += [tensor] if batch is None else own(batch.examples)
    return found
