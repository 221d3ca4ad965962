"""How samples become a batch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from stridescope.engine import torch
from stridescope.engine.tensor import Tensor

Rules = dict[Any, Callable[..., Any]]
_CANNOT = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
_TEXT_KINDS = "SaUO"


def default_convert(data: Any) -> Any:
    """A sample with its arrays and NumPy numbers as tensors, without a batch dimension."""
    if isinstance(data, np.ndarray):
        return data if data.dtype.kind in _TEXT_KINDS else torch.as_tensor(data)  # type: ignore[attr-defined]
    if isinstance(data, np.generic):
        return data if isinstance(data, (np.str_, np.bytes_)) else torch.as_tensor(data)  # type: ignore[attr-defined]
    if isinstance(data, Mapping):
        return _mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(item) for item in data))
    if isinstance(data, tuple):
        return [default_convert(item) for item in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _sequence(data, [default_convert(item) for item in data])
    return data


def default_collate(batch: Any) -> Any:
    """A batch: tensors are stacked, numbers become tensors, texts stay a list, containers are collated inside."""
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(batch: Any, *, collate_fn_map: Rules | None = None) -> Any:
    """A batch, by rules for the types of its elements; raises TypeError for a type without rule."""
    first = batch[0]
    rule = _rule(first, collate_fn_map or {})
    if rule is not None:
        return rule(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        columns = {key: collate([sample[key] for sample in batch], collate_fn_map=collate_fn_map) for key in first}
        return _mapping(first, columns)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=False)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        rows = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=True)]
        return rows if isinstance(first, tuple) else _sequence(first, rows)
    raise TypeError(_CANNOT.format(type(first)))


def _rule(first: Any, rules: Rules) -> Callable[..., Any] | None:
    exact = rules.get(type(first))
    return exact or next((rule for kind, rule in rules.items() if isinstance(first, kind)), None)


def _mapping(like: Any, items: dict[Any, Any]) -> Any:
    """The items in a mapping of the same class, if it can be made so; else in a dict."""
    try:
        if not isinstance(like, MutableMapping):
            return type(like)(items)
        clone = copy.copy(like)
        clone.update(items)
        return clone
    except TypeError:
        return items


def _sequence(like: Any, items: list[Any]) -> Any:
    """The items in a sequence of the same class, if it can be made so; else in a list."""
    try:
        if not isinstance(like, MutableSequence):
            return type(like)(items)
        clone = copy.copy(like)
        for place, item in enumerate(items):
            clone[place] = item
        return clone
    except TypeError:
        return items


def collate_tensor_fn(batch: Any, *, collate_fn_map: Rules | None = None) -> Any:
    """Stack tensors."""
    return torch.stack(list(batch), 0)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: Rules | None = None) -> Any:
    """Stack arrays."""
    if batch[0].dtype.kind in _TEXT_KINDS:
        raise TypeError(_CANNOT.format(batch[0].dtype))
    return collate([torch.as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)  # type: ignore[attr-defined]


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: Rules | None = None) -> Any:
    """A tensor of NumPy's numbers, in their dtype."""
    return torch.as_tensor(np.asarray(batch))  # type: ignore[attr-defined]


def collate_float_fn(batch: Any, *, collate_fn_map: Rules | None = None) -> Any:
    """Floats are doubles."""
    return torch.tensor(batch, dtype=torch.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: Rules | None = None) -> Any:
    """A tensor of ints."""
    return torch.tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: Rules | None = None) -> Any:
    """Texts stay as they are."""
    return batch


default_collate_fn_map: Rules = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}
