"""How a batch's samples are fetched from a dataset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Recipe(NamedTuple):
    """What a loader's processes need to know to make a batch."""

    dataset: Any
    iterable: bool
    batched: bool
    collate: Callable[[Any], Any]
    drop_last: bool

    def fetcher(self) -> Callable[[Any], Any]:
        """A function from an index, or a list of indices, to a batch."""
        if self.iterable:
            return _Stream(self)
        return self.by_index

    def by_index(self, index: Any) -> Any:
        """The batch of a dataset that is indexed."""
        if not self.batched:
            return self.collate(self.dataset[index])
        several = getattr(self.dataset, "__getitems__", None)
        return self.collate(several(index) if several else [self.dataset[one] for one in index])


class _Stream:
    """Takes batches from an iterable dataset; raises StopIteration after its end."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe, self.samples, self.ended = recipe, iter(recipe.dataset), False

    def __call__(self, index: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.recipe.batched:
            return self.recipe.collate(next(self.samples))
        batch = []
        for _ in index:
            try:
                batch.append(next(self.samples))
            except StopIteration:
                self.ended = True
                break
        if not batch or (self.recipe.drop_last and len(batch) < len(index)):
            raise StopIteration
        return self.recipe.collate(batch)
