"""torch.func: gradients, Jacobians and vmap of functions, and what they refuse; the expected texts are PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stridescope.engine import torch

F: Any = torch.func
x = torch.tensor([0.5, 1.0, 2.0])
y = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def squares(a: Any) -> Any:
    return a**2


def total(a: Any) -> Any:
    return (a**2).sum()


def test_derivatives_of_functions() -> None:
    assert F.grad(total)(x).tolist() == [1.0, 2.0, 4.0]
    assert F.grad(F.grad(lambda a: a**3))(torch.tensor(2.0)).item() == 12.0
    assert F.vjp(squares, x)[1](torch.ones(3))[0].tolist() == [1.0, 2.0, 4.0]
    assert F.jvp(squares, (x,), (torch.ones(3),))[1].tolist() == [1.0, 2.0, 4.0]
    assert F.jacrev(squares)(x).tolist() == F.jacfwd(squares)(x).tolist() == torch.diag(2 * x).tolist()
    assert F.hessian(total)(x).tolist() == (2 * torch.eye(3)).tolist()
    assert F.jacrev(lambda p: {"o": p["a"] ** 2})({"a": x})["o"]["a"].shape == (3, 3)


def test_a_tangent_can_be_pushed_twice() -> None:
    inner = lambda a: F.jvp(lambda b: b**3, (a,), (torch.ones(3),))[1]  # noqa: E731
    value, slope = F.jvp(inner, (x,), (torch.ones(3),))
    assert value.tolist() == (3 * x**2).tolist() and slope.tolist() == (6 * x).tolist()
    assert not value.requires_grad and not slope.requires_grad


def test_the_forward_jacobian_lies_in_memory_column_by_column() -> None:
    assert F.jacfwd(lambda a: a[:2] ** 2)(x).stride() == (1, 2)
    assert F.jacrev(lambda a: a[:2] ** 2)(x).stride() == (3, 1)


def test_vmap_maps_over_dims_and_nests() -> None:
    assert F.vmap(torch.dot)(y, y).tolist() == [14.0, 77.0]
    assert F.vmap(squares, in_dims=1, out_dims=1)(y).tolist() == (y**2).tolist()
    assert F.vmap(torch.mul, in_dims=(None, 0))(x, y).tolist() == (x * y).tolist()
    outer = F.vmap(F.vmap(torch.mul, in_dims=(None, 0)), in_dims=(0, None))
    assert outer(x, x).tolist() == torch.outer(x, x).tolist()
    assert F.vmap(lambda p: {"o": p["a"] * p["b"]}, in_dims=({"a": 0, "b": None},))({"a": y, "b": x})["o"].shape == (
        2,
        3,
    )
    assert F.vmap(F.grad(total))(y).tolist() == (2 * y).tolist()
    assert F.vmap(squares, chunk_size=1)(y).tolist() == (y**2).tolist()
    assert F.vmap(squares)(torch.ones(0, 3)).shape == (0, 3)


def test_what_does_not_depend_on_the_example_is_not_copied() -> None:
    assert F.vmap(lambda a: x)(y).stride() == (0, 1)
    assert F.vmap(lambda a: x, out_dims=None)(y) is x


def test_randomness_is_refused_shared_or_different() -> None:
    noisy = lambda a: a * 0 + torch.rand(3)  # noqa: E731
    with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
        F.vmap(noisy)(y)
    torch.manual_seed(0)
    first, second = F.vmap(noisy, randomness="same")(y)
    assert first.tolist() == second.tolist()
    torch.manual_seed(0)
    assert (
        F.vmap(noisy, randomness="different")(y).tolist()
        == torch.rand(0).new_tensor((torch.manual_seed(0), torch.rand(2, 3))[1].tolist()).tolist()
    )


def test_custom_functions_need_a_context_and_a_rule() -> None:
    class Old(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            return a * 2

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0] * 2

    class Ruled(torch.autograd.Function):
        @staticmethod
        def forward(a: Any) -> Any:
            return a**2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0] * 2 * ctx.saved_tensors[0]

        @staticmethod
        def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
            return args[0] ** 2, in_dims[0]

    with pytest.raises(RuntimeError, match="it must override the setup_context staticmethod"):
        F.grad(lambda a: Old.apply(a).sum())(x)
    assert F.grad(lambda a: Ruled.apply(a).sum())(x).tolist() == [1.0, 2.0, 4.0]
    assert F.vmap(Ruled.apply)(y).tolist() == (y**2).tolist()


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: F.grad(squares)(x), "Expected f(*args) to return a scalar Tensor, got tensor with 1 dims"),
    (lambda: F.grad(lambda a: 3.0)(x), "Expected f(*args) to return a Tensor, got <class 'float'>"),
    (lambda: F.grad(total, argnums=(0, 0))(x), "argnums elements must be unique, got (0, 0)"),
    (lambda: F.grad(total, argnums=1)(x), "Got argnum=1, but only 1 positional inputs"),
    (lambda: F.grad(total, has_aux=True)(x), "output of function f should be a tuple: (output, aux)"),
    (lambda: F.grad(lambda a: (a.sum().backward(), a.sum())[1])(x), "backward() called inside a functorch transform"),
    (lambda: F.grad(total)(3.0), "Thing passed to transform API must be Tensor, got <class 'float'>"),
    (lambda: F.vjp(lambda a: (a, a), x)[1](x), "cotangents: *, primal output: (*, *)"),
    (lambda: F.jvp(squares, x, (x,)), "Expected primals to be a tuple"),
    (lambda: F.jvp(squares, (x,), (x, x)), "TreeSpec(tuple, None, [*]) and tangents with structure TreeSpec(tuple"),
    (lambda: F.vmap(squares, in_dims=2)(y), "expected in_dim to satisfy -2 <= in_dim < 2"),
    (lambda: F.vmap(squares, in_dims=[0])(y), "expected `in_dims` to be int or a (potentially nested) tuple"),
    (lambda: F.vmap(torch.mul)(y, x), "in the mapped dimension, got sizes [2, 3]"),
    (lambda: F.vmap(squares, in_dims=(None,))(y), "Expected at least one Tensor to vmap over"),
    (lambda: F.vmap(lambda a: 3)(y), "must only return Tensors, got type <class 'int'>"),
    (lambda: F.vmap(squares, out_dims=None)(y), "can not return a BatchedTensor when out_dim is None"),
    (lambda: F.vmap(lambda a: a.sum().item())(y), "It looks like you're calling .item() on a Tensor"),
    (lambda: F.vmap(lambda a: a if a.sum() > 0 else -a)(y), "some data-dependent control flow"),
    (lambda: F.vmap(lambda a: a.nonzero())(y), "Attempted to vmap over aten::nonzero"),
    (lambda: F.vmap(lambda a: a[a > 1])(y), "Attempting to batch over indexing with a boolean mask"),
    (lambda: F.vmap(squares, chunk_size=0)(y), "chunk_size should be None or greater than 0. (got 0)"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_is_refused(number: int) -> None:
    call, text = REFUSED[number]
    with pytest.raises((RuntimeError, ValueError)) as caught:
        call()
    assert text in str(caught.value)


def test_modules_are_called_with_other_tensors() -> None:
    linear = torch.nn.Linear(3, 2)
    given = {"weight": torch.ones(2, 3), "bias": torch.zeros(2)}
    assert F.functional_call(linear, given, x).tolist() == [3.5, 3.5]
    with pytest.raises(RuntimeError, match=r"Missing key\(s\): 'bias'"):
        F.functional_call(linear, {"weight": given["weight"]}, x, strict=True)
    with pytest.raises(ValueError, match="appeared in multiple dictionaries"):
        F.functional_call(linear, (given, given), x)
    models = [torch.nn.Linear(3, 2) for _ in range(2)]
    stacked, buffers = F.stack_module_state(models)
    together = F.vmap(lambda p, b: F.functional_call(models[0], (p, b), (x,)))(stacked, buffers)
    assert together.tolist() == [model(x).tolist() for model in models]


def test_tied_weights_are_given_once() -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = self.b = torch.nn.Parameter(torch.ones(1))

        def forward(self, z: Any) -> Any:
            return z * self.a + self.b

    assert F.functional_call(Tied(), {"a": torch.tensor([3.0])}, torch.ones(1)).item() == 6.0
    with pytest.raises(ValueError, match="which are tied"):
        F.functional_call(Tied(), {"a": torch.tensor([3.0]), "b": torch.tensor([4.0])}, torch.ones(1))


@pytest.mark.parametrize(
    ("in_dims", "out_dims", "strides"),
    [(0, 0, (3, 1)), (1, 0, (1, 3)), (1, 1, (3, 1)), (0, 1, (1, 3)), (0, -1, (1, 3))],
)
def test_vmapped_results_lie_in_memory_as_the_arguments_do(in_dims: Any, out_dims: Any, strides: Any) -> None:
    made = torch.vmap(lambda row: row * 2, in_dims, out_dims)(torch.arange(12.0).view(4, 3))
    assert made.stride() == strides


def test_keys_that_do_not_fit_are_named_in_order() -> None:
    module = torch.nn.Linear(1, 1)
    with pytest.raises(RuntimeError, match="Missing key.s.: 'bias', 'weight'."):
        torch.func.functional_call(module, {"other": torch.ones(1)}, (torch.ones(1, 1),), strict=True)
