"""What the tests of ops share: the tensors their expressions name, and how a result is shown."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest

from stridescope.engine import torch

SETUP = """
f = torch.arange(6.0).reshape(2, 3) - 2
i = torch.tensor([[3, -1, 4], [1, -5, 9]])
b = torch.tensor([[True, False, True], [False, False, True]])
c = torch.tensor([1 + 2j, -3 + 0.5j, 0j])
h = torch.tensor([0.1, 2.0, -3.3], dtype=torch.float16)
u = torch.tensor([250, 3, 7], dtype=torch.uint8)
n = torch.tensor([1.0, float("nan"), -2.0, float("inf")])
s = torch.tensor(2.0)
e = torch.zeros(0)
m = torch.tensor([[4.0, 1.0, 2.0], [1.0, 3.0, 0.0], [2.0, 0.0, 5.0]])
g = torch.tensor([0.5, 1.5, 2.5], requires_grad=True)
"""


@pytest.fixture
def printed_by_us() -> Callable[[str], str]:
    """Turn an expression over the tensors of SETUP into its printed result, or into its error."""

    def shown(expression: str) -> str:
        names = {"torch": torch}
        exec(SETUP, names)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return repr(eval(expression, names))
            except Exception as error:
                return f"{type(error).__name__}: {error}"

    return shown


def evaluated(expression: str) -> tuple[torch.Tensor, torch.Tensor]:
    """The value of an expression over ``x``, a leaf of shape 4 by 5 by 6, and ``x``."""
    x = ((torch.arange(120.0) - 59.5) / 20).reshape(4, 5, 6).clone().requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(expression, {"torch": torch, "x": x, "__import__": __import__}), x


Layout = tuple[tuple[int, ...], tuple[int, ...], int, str | None, bool]


@pytest.fixture
def layout_of() -> Callable[[str], Layout]:
    """What a result looks like: shape, stride, offset, the name of its grad_fn, and whether it is a view of ``x``."""

    def seen(expression: str) -> Layout:
        result, x = evaluated(expression)
        node = None if result.grad_fn is None else result.grad_fn.name()
        return tuple(result.shape), result.stride(), result.storage_offset(), node, result._base is x

    return seen


@pytest.fixture
def refusal_of() -> Callable[[str], tuple[str, str]]:
    """The type of the error that an expression raises, and the first line of its text."""

    def raised(expression: str) -> tuple[str, str]:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - the type is part of the data
            evaluated(expression)
        return type(caught.value).__name__, str(caught.value).split("\n")[0]

    return raised
