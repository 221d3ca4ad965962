"""vmap runs a function once, for all examples; what it shows of them, refuses and draws is PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stridescope.engine import torch

F: Any = torch.func
vmap: Any = torch.func.vmap
x = torch.arange(6.0).reshape(3, 2)
w = torch.tensor([1.0, 2.0])


def seen(function: Callable[[Any], Any], argument: Any = x, **options: Any) -> list[Any]:
    """What ``function`` makes of the tensor that stands for all examples, each time that it is called."""
    found: list[Any] = []

    def watched(a: Any) -> Any:
        found.append(function(a))
        return a

    vmap(watched, **options)(argument)
    return found


def test_the_function_is_called_once_and_sees_one_example() -> None:
    assert seen(lambda a: (a.shape, a.dim(), len(a), a.stride(), a.requires_grad)) == [((2,), 1, 2, (1,), False)]
    assert seen(lambda a: a.shape, in_dims=1, out_dims=1) == [(3,)]
    assert len(seen(lambda a: 0, chunk_size=2)) == 2
    assert seen(lambda a: (a.requires_grad, a.grad_fn), x.clone().requires_grad_()) == [(False, None)]
    assert seen(lambda a: 0, torch.ones(0, 2)) == [0]


def test_stand_ins_print_what_they_stand_for() -> None:
    rows = "tensor([[0., 1.],\n            [2., 3.],\n            [4., 5.]])"
    assert seen(str) == [f"BatchedTensor(lvl=1, bdim=0, value=\n    {rows}\n)"]
    nested: list[str] = []
    vmap(vmap(lambda a: (nested.append(str(a)), a)[1]))(x[:1])
    inner = "    BatchedTensor(lvl=1, bdim=0, value=\n        tensor([[0., 1.]])\n    )"
    assert nested == [f"BatchedTensor(lvl=2, bdim=0, value=\n{inner}\n)"]
    texts: list[str] = []
    vmap(F.grad(lambda a: (texts.append(str(a * 2)), a.sum())[1]))(x[:1])
    assert texts[0].startswith("GradTrackingTensor(lvl=2, value=\n    BatchedTensor(lvl=1, bdim=0, value=\n")
    F.grad(lambda a: (texts.append(repr(a)), texts.append(str(w)), a.sum())[2])(w)
    assert texts[1:] == ["GradTrackingTensor(lvl=1, value=\n    tensor([1., 2.])\n)", "tensor([1., 2.])"]


def test_writes_reach_every_example() -> None:
    def written(a: Any) -> Any:
        same = a.clone()
        assert same.mul_(2) is same
        same[0] = 5
        fresh = a.new_zeros(2)
        fresh[1] = a[1]
        return same, fresh

    same, fresh = vmap(written)(x)
    assert same.tolist() == [[5, 2], [5, 6], [5, 10]] and fresh.tolist() == [[0, 1], [0, 3], [0, 5]]
    own = x.clone()
    result = vmap(lambda a: a.add_(1))(own)
    assert torch.equal(own, x + 1) and result.data_ptr() == own.data_ptr()


def test_an_offset_into_memory_is_each_examples_own() -> None:
    whole = torch.arange(24.0).reshape(2, 3, 4)
    assert vmap(lambda a: a.as_strided((2,), (4,), 1))(whole).tolist() == [[1.0, 5.0], [13.0, 17.0]]


def test_transforms_nest_in_any_order() -> None:
    assert vmap(lambda a: F.jvp(torch.sin, (a,), (a,)))(x)[0].tolist() == x.sin().tolist()
    cube = lambda a: (a**3).sum()  # noqa: E731
    assert vmap(F.grad(cube))(x).tolist() == (3 * x**2).tolist()
    assert torch.equal(vmap(F.hessian(cube))(x), torch.diag_embed(6 * x))
    weighed = F.grad(lambda v: vmap(lambda a: (a * v).sum())(x).sum())(w)
    assert weighed.tolist() == [6.0, 9.0] and not weighed.requires_grad
    inner = F.grad(lambda a: vmap(F.grad(lambda b: b**3 * a))(w).sum())(torch.tensor(2.0))
    assert inner.item() == 15.0 and inner.grad_fn is None
    assert vmap(lambda t: F.jvp(lambda a: a**2, (w,), (t,))[1])(torch.eye(2)).tolist() == [[2.0, 0.0], [0.0, 4.0]]
    outer = vmap(lambda a: vmap(lambda b: a * b)(x))(x)
    assert torch.equal(outer, x[:, None] * x[None])
    per_sample = vmap(F.grad(lambda v, a: (a * v).sin().sum()), in_dims=(None, 0))(w, x)
    assert torch.allclose(per_sample, x * (x * w).cos())


def test_gradients_of_one_graph_by_many_vectors() -> None:
    point = w.clone().requires_grad_()
    result = point**2
    rows = vmap(lambda v: torch.autograd.grad(result, point, v, retain_graph=True)[0])(torch.eye(2))
    assert rows.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    example = x.clone().requires_grad_()
    vmap(lambda a: (a * 2).sum())(example).sum().backward()
    assert example.grad.tolist() == [[2.0, 2.0]] * 3


def ruled(calls: list[Any]) -> Any:
    class Rule(torch.autograd.Function):
        @staticmethod
        def forward(a: Any) -> Any:
            return a * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0] * 2

        @staticmethod
        def vmap(info: Any, in_dims: Any, a: Any) -> Any:
            calls.append((info.batch_size, info.randomness, in_dims, tuple(a.shape)))
            return Rule.apply(a), in_dims[0]

    return Rule.apply


def test_the_rule_of_a_custom_function_is_asked_once_with_all_examples() -> None:
    calls: list[Any] = []
    assert torch.equal(vmap(ruled(calls), in_dims=1, out_dims=1)(x), 2 * x)
    assert torch.equal(vmap(lambda a: ruled(calls)(a + 1))(x), 2 * (x + 1))
    assert calls == [(2, "error", (1,), (3, 2)), (3, "error", (0,), (3, 2))]
    assert vmap(F.grad(lambda a: ruled(calls)(a).sum()))(x).tolist() == [[2.0, 2.0]] * 3


def drawn(function: Callable[[Any], Any], randomness: str, **options: Any) -> Any:
    torch.manual_seed(0)
    return vmap(function, randomness=randomness, **options)(x)


def once(function: Callable[[], Any]) -> Any:
    torch.manual_seed(0)
    return function()


def test_different_numbers_are_drawn_for_all_examples_at_once() -> None:
    assert torch.equal(drawn(lambda a: torch.randn(20), "different"), once(lambda: torch.randn(3, 20)))
    assert torch.equal(drawn(lambda a: torch.rand_like(a), "different"), once(lambda: torch.rand(3, 2)))
    assert torch.equal(drawn(lambda a: a.clone().uniform_(), "different"), once(lambda: torch.rand(3, 2)))
    assert torch.equal(drawn(lambda a: torch.normal(a, 1.0), "different"), once(lambda: torch.normal(x, 1.0)))
    drop = lambda a: torch.nn.functional.dropout(a + 1, 0.5)  # noqa: E731
    assert torch.equal(drawn(drop, "different"), once(lambda: drop(x)))


def test_the_same_numbers_are_drawn_once() -> None:
    assert torch.equal(drawn(lambda a: torch.rand(2), "same")[2], once(lambda: torch.rand(2)))
    assert torch.equal(drawn(lambda a: a.clone().uniform_(), "same")[2], once(lambda: torch.rand(2)))
    chunks = drawn(lambda a: a * 0 + torch.rand(2), "same", chunk_size=2)
    assert torch.equal(chunks[0], chunks[2])


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: vmap(lambda a: a.numpy())(x), "Cannot access data pointer of Tensor that doesn't have storage"),
    (lambda: vmap(lambda a: a.tolist())(x), "Cannot access data pointer of Tensor that doesn't have storage"),
    (lambda: vmap(lambda a: f"{a.sum()}")(x), "It looks like you're calling .item() on a Tensor."),
    (lambda: vmap(lambda i: [1, 2, 3][i])(torch.arange(3)), "It looks like you're calling .item() on a Tensor."),
    (lambda: vmap(lambda a: torch.tensor(a))(x), "Can't detach views in-place."),
    (lambda: vmap(lambda a: a.data)(x), "accessing `data` under vmap transform is not allowed"),
    (lambda: vmap(lambda a: torch.equal(a, a))(x), "Batching rule not implemented for aten::equal."),
    (lambda: vmap(lambda a: torch.allclose(a, a))(x), "vmap over torch.allclose isn't supported yet."),
    (lambda: vmap(lambda a: a.masked_select(a > 0))(x), "vmap: Attempted to vmap over `mask` in torch.masked_select"),
    (lambda: vmap(torch.unique)(x), "Attempted to vmap over aten::_unique2."),
    (lambda: vmap(lambda a: torch.zeros(2).copy_(a))(x), "vmap: inplace arithmetic(self, *extra_args) is not possible"),
    (lambda: vmap(lambda a: w.clone().add_(a))(x), "output with shape [2] doesn't match the broadcast shape [3, 2]"),
    (lambda: vmap(lambda a: torch.add(a, a, out=torch.empty(2)))(x), "Batching rule not implemented for aten::add.out"),
    (lambda: vmap(lambda a: a.requires_grad_())(x), "You are attempting to call Tensor.requires_grad_()"),
    (
        lambda: F.grad(lambda a: a.clone().requires_grad_().sum())(w),
        "You are attempting to call Tensor.requires_grad_(",
    ),
    (lambda: vmap(torch.nn.BatchNorm1d(2))(torch.ones(3, 4, 2)), "Batch norm got a batched tensor as input while the"),
    (lambda: drawn(lambda a: torch.empty(2).uniform_(), "different"), "Cannot ask for different inplace randomness"),
    (lambda: drawn(torch.poisson, "same"), "Vmap does not currently support same randomness with a batched tensor"),
    (
        lambda: F.jacfwd(lambda a: a * 2)(torch.arange(2)),
        "Expected primal to be floating point or complex, but got: torc",
    ),
    (lambda: F.jacrev(lambda a: a * 2)(torch.arange(2)), "only Tensors of floating point dtype can require gradients"),
]


@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_is_refused(number: int) -> None:
    call, text = REFUSED[number]
    with pytest.raises((RuntimeError, ValueError)) as caught:
        call()
    assert text in str(caught.value)


def test_nothing_stays_behind_after_a_failure() -> None:
    for call, _ in REFUSED[:4]:
        with pytest.raises(RuntimeError):
            call()
    assert str(w.clone().requires_grad_()) == "tensor([1., 2.], requires_grad=True)"
    assert torch.rand(2).shape == (2,)


def test_models_stack() -> None:
    models = [torch.nn.Linear(2, 3) for _ in range(4)]
    parameters, buffers = F.stack_module_state(models)
    outputs = vmap(lambda p, b: F.functional_call(models[0], (p, b), (x,)))(parameters, buffers)
    assert torch.allclose(outputs, torch.stack([model(x) for model in models]))
    outputs.sum().backward()
    assert torch.allclose(parameters["weight"].grad, x.sum(0).expand(4, 3, 2))
