"""The handle that registering a hook returns."""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any


class RemovableHandle:
    """What registering a hook returns: ``remove()`` takes the hook out again; also a context manager.

    Args:
        hooks_dict: the ordered dict that holds the hook under ``handle.id``; held weakly.
        extra_dict: other dicts that have an entry of the same id, such as one of options.
    """

    _ids = itertools.count()

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref: Any = weakref.ref(hooks_dict)
        self.id = next(RemovableHandle._ids)
        extra = () if extra_dict is None else extra_dict if isinstance(extra_dict, (list, tuple)) else (extra_dict,)
        self.extra_dict_ref: tuple[Any, ...] = tuple(weakref.ref(each) for each in extra)

    def remove(self) -> None:
        """Take the hook out; a second time does nothing."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:
        return (self.hooks_dict_ref(), self.id, tuple(reference() for reference in self.extra_dict_ref))

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        hooks, self.id, extra = state
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        self.extra_dict_ref = tuple(weakref.ref(OrderedDict() if each is None else each) for each in extra)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


RemovableHandle.__module__ = "torch.utils.hooks"


def registered(hooks: OrderedDict[int, Any], hook: Callable[..., Any]) -> RemovableHandle:
    """Put ``hook`` into ``hooks`` and return the handle that takes it out."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle
