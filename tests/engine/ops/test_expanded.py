"""Writing into an expanded tensor: what PyTorch 2.13 refuses, what it lets pass, and what it warns of."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from stridescope.engine import torch

REFUSED = "more than one element of the written-to tensor refers to a single memory location"


def expanded() -> torch.Tensor:
    return torch.zeros(1).expand(3)


def assigned(key: Any, value: Any) -> torch.Tensor:
    target = expanded()
    target[key] = value
    return target


@pytest.mark.parametrize("key", [slice(None), Ellipsis, None, True], ids=repr)
@pytest.mark.parametrize("value", [2.0, torch.tensor(2.0), torch.ones(1), torch.ones(3)], ids=repr)
def test_a_whole_write_is_refused(key: Any, value: Any) -> None:
    with pytest.raises(RuntimeError, match=REFUSED):
        assigned(key, value)


@pytest.mark.parametrize("write", [lambda t: t.copy_(torch.ones(3)), lambda t: t.add_(1), lambda t: t.uniform_()])
def test_in_place_ops_are_refused(write: Callable[[torch.Tensor], Any]) -> None:
    with pytest.raises(RuntimeError, match=REFUSED):
        write(expanded())


@pytest.mark.parametrize(
    "write",
    [lambda: assigned(0, 2.0), lambda: assigned(slice(0, 1), 2.0), lambda: expanded().fill_(2.0)],
)
def test_one_element_or_a_number_may_be_written(write: Callable[[], torch.Tensor]) -> None:
    assert write().tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("write", "names"),
    [
        (lambda: assigned(torch.tensor([0]), 2.0), ["index_put_"]),
        (lambda: assigned(expanded() == 0, torch.full((3,), 2.0)), ["index_put_"]),
        (lambda: assigned(expanded() == 0, 2.0), ["index_put_", "masked_fill_"]),
        (lambda: expanded().masked_fill_(expanded() == 0, 2.0), ["masked_fill_"]),
        (lambda: expanded().index_fill_(0, torch.tensor([0]), 2.0), ["index_fill_"]),
    ],
)
def test_deprecated_writes_pass_with_a_warning(write: Callable[[], torch.Tensor], names: list[str]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert write().tolist() == [2.0, 2.0, 2.0]
    assert [str(each.message).split()[2] for each in caught] == names
