"""What a transformed function may write into."""

from __future__ import annotations

from typing import Any

import pytest

from stridescope.engine import torch
from stridescope.engine.torch import func

X = torch.tensor([1.0, 2.0])
Written = list[tuple[str, Any]]
WRITES: Written = [
    ("add_.Tensor", lambda c, a: c.add_(a)),
    ("zero_", lambda c, a: c.zero_()),
    ("copy_", lambda c, a: c.__setitem__(0, a[0])),
    ("add_.Tensor", lambda c, a: c[:1].add_(a[:1])),
    ("mul_.Tensor", lambda c, a: c.data.mul_(2)),
    ("unsqueeze_", lambda c, a: c.unsqueeze_(0)),
]


@pytest.mark.parametrize(("name", "write"), WRITES)
@pytest.mark.parametrize(
    "transform",
    [
        lambda f: func.grad(f)(X),
        lambda f: func.vjp(f, X),
        lambda f: func.jvp(f, (X,), (X,)),
        lambda f: func.jacrev(f)(X),
        lambda f: func.hessian(f)(X),
    ],
)
def test_a_captured_tensor_is_not_written(transform: Any, name: str, write: Any) -> None:
    captured = torch.zeros(2)

    def function(a: Any) -> Any:
        write(captured, a)
        return a.sum()

    with pytest.raises(RuntimeError) as caught:
        transform(function)
    assert str(caught.value) == (
        "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation "
        f"(aten::{name}) that would mutate a captured Tensor. This is not supported; please rewrite the function being "
        "transformed to explicitly accept the mutated Tensor(s) as inputs."
    )
    assert captured.tolist() == [0.0, 0.0]


def test_what_belongs_to_an_outer_function_is_captured() -> None:
    def outer(a: Any) -> Any:
        twice = a * 2
        return func.grad(lambda b: (b * twice.add_(1)).sum())(a).sum()

    with pytest.raises(RuntimeError, match="would mutate a captured Tensor"):
        func.grad(outer)(X)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda a: torch.zeros(2).add_(a).sum(), [1.0, 1.0]),
        (lambda a: torch.tensor([1.0, 3.0]).mul_(a).sum(), [1.0, 3.0]),
        (lambda a: (a * 2)[1:].mul_(3).sum(), [0.0, 6.0]),
        (lambda a: a.clone().view(2, 1)[0].copy_(a[1]).sum(), [0.0, 1.0]),
        (lambda a: torch.cat([a, a]).clamp_(0, 1.5).sum(), [2.0, 0.0]),
    ],
)
def test_what_the_function_made_is_written(function: Any, expected: Any) -> None:
    assert func.grad(function)(X).tolist() == expected
    assert func.jvp(function, (X,), (torch.tensor([1.0, 0.0]),))[1].item() == expected[0]


def test_after_the_function_everything_is_written_again() -> None:
    captured = torch.zeros(2)
    with pytest.raises(RuntimeError, match="captured"):
        func.grad(lambda a: captured.add_(a).sum())(X)
    assert captured.add_(1).tolist() == [1.0, 1.0]
