"""What stands below autograd sees each op as PyTorch's dispatcher shows it: its overload, arguments and order."""

from __future__ import annotations

import json
import pathlib
import runpy
from collections.abc import Callable
from typing import Any

import pytest

from stridescope.engine import torch
from stridescope.engine.torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from stridescope.engine.torch.utils._pytree import tree_map

TABLES = pathlib.Path(__file__).with_name("tables")
RECORDED: dict[str, list[str]] = json.loads((TABLES / "dispatched.json").read_text(encoding="utf-8"))
Answer = Callable[[Any, str], list[str]]


@pytest.fixture(scope="module")
def answer() -> Answer:
    asked: Answer = runpy.run_path(str(TABLES / "dispatched.py"))["answer"]
    return asked


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("line", RECORDED)
def test_a_mode_sees_the_ops_that_pytorch_has(line: str, answer: Answer) -> None:
    assert answer(torch, line) == RECORDED[line]


class Changing(TorchDispatchMode):
    """Gives ``func`` other arguments than it was shown."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args = tree_map(lambda a: a + 1 if isinstance(a, torch.Tensor) else a, args)
        return func(*args, **(kwargs or {}))


def test_func_takes_other_arguments_than_it_was_shown() -> None:
    x = torch.tensor([1.0, -3.0], requires_grad=True)
    with Changing():
        y = torch.relu(x)
    assert y.tolist() == [2.0, 0.0]
    with Changing():
        y.sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]  # each of the gradient's ops adds one to what it reads


@pytest.fixture
def wrapping() -> Any:
    class Wrapping(torch.Tensor):  # type: ignore[misc]
        __slots__ = ("elem",)

        @staticmethod
        def __new__(cls: Any, elem: Any, requires_grad: bool = False) -> Any:
            made = torch.Tensor._make_wrapper_subclass(
                cls, elem.size(), strides=elem.stride(), dtype=elem.dtype, requires_grad=requires_grad
            )
            made.elem = elem
            return made

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append((str(func), types))
            inner = tree_map(lambda a: a.elem if isinstance(a, cls) else a, (args, kwargs or {}))
            outer = tree_map(lambda a: cls(a) if isinstance(a, torch.Tensor) else a, func(*inner[0], **inner[1]))
            return return_and_correct_aliasing(func, args, kwargs or {}, outer)

    seen: list[Any] = []
    Wrapping.seen = seen  # type: ignore[attr-defined]
    return Wrapping


def test_a_class_does_every_op_of_its_tensors(wrapping: Any) -> None:
    x = wrapping(torch.tensor([1.0, 2.0]), requires_grad=True)
    y = (x * 3).view(2, 1)
    y.sum().backward()
    assert [name for name, _ in wrapping.seen] == [
        "aten.mul.Tensor", "aten.view.default", "aten.sum.default", "aten.ones_like.default", "aten.expand.default",
        "aten.view.default", "aten.mul.Tensor", "aten.detach.default",
    ]  # fmt: skip
    assert y.grad_fn.name() == "ViewBackward0" and type(x.grad) is wrapping and x.grad.elem.tolist() == [3.0, 3.0]
    assert wrapping.seen[0][1] == (wrapping,) and (x > 1).elem.tolist() == [False, True] and x.sum().item() == 3.0


def test_a_class_writes_in_place(wrapping: Any) -> None:
    x = wrapping(torch.zeros(2))
    assert x.add_(1) is x and x.elem.tolist() == [1.0, 1.0] and x._version == 1
    with pytest.raises(NotImplementedError, match=r"^out= of add for tensors with a __torch_dispatch__ is not in Str"):
        torch.add(torch.ones(2), 1, out=x)


def test_a_class_that_has_no_answer_is_named() -> None:
    class Silent(torch.Tensor):  # type: ignore[misc]
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented if func is torch.ops.aten.exp.default else super().__torch_dispatch__(
                func, types, args, kwargs
            )  # fmt: skip

    x = torch.ones(2).as_subclass(Silent)
    assert type(x + 1) is torch.Tensor
    with pytest.raises(TypeError, match=r"^Multiple dispatch failed for 'torch._ops.aten.exp.default'; all __torch_di"):
        x.exp()
    with pytest.raises(TypeError, match=r"^Tensor must define __torch_dispatch__$"):
        torch.Tensor._make_wrapper_subclass(torch.Tensor, (2,))


def test_derivatives_are_ops() -> None:
    aten, grad = torch.ops.aten, torch.ones(2, requires_grad=True)
    x = torch.tensor([-0.5, 0.5])
    assert aten.threshold_backward(grad, x, 0).tolist() == [0.0, 1.0]
    assert aten.elu_backward(grad, 1.0, 1.0, 1.0, True, x).tolist() == [0.5, 1.0]
    assert aten.sigmoid_backward(grad, x).grad_fn.name() == "SigmoidBackwardBackward0"
