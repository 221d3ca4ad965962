"""gradcheck and gradgradcheck: what they find, in whole and in fast mode; the expected texts are PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stridescope.engine import torch
from stridescope.engine.torch.autograd.gradcheck import (
    GradcheckError,
    get_analytical_jacobian,
    get_numerical_jacobian,
    gradcheck,
    gradgradcheck,
)

both = pytest.mark.parametrize("fast", [False, True])


def leaf(*values: complex) -> Any:
    kind = torch.cdouble if any(isinstance(v, complex) for v in values) else torch.double
    return torch.tensor(values, dtype=kind, requires_grad=True)


def function(backward: Callable[[Any], Any], forward: Any = None, jvp: Any = None) -> Any:
    """A custom function with this backward; forward is the identity where not given."""

    class Custom(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            return a.clone() if forward is None else forward(a)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return backward(grads[0])

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            return jvp(tangents[0])

    return Custom.apply


@both
def test_right_gradients_pass(fast: bool) -> None:
    x, z = leaf(0.5, 1.5), leaf(0.5 + 1j, 2j)
    several = lambda a, b: (a * b, (a + b).exp(), a.argmax())  # noqa: E731
    assert gradcheck(several, (x, leaf(2.0, 3.0)), fast_mode=fast, check_batched_grad=True)
    assert gradcheck(torch.exp, z, fast_mode=fast, check_forward_ad=True)
    batched = {"check_batched_grad": True, "check_batched_forward_grad": True}
    assert gradcheck(torch.sin, x, fast_mode=fast, check_forward_ad=True, **batched)
    assert gradgradcheck(torch.sin, x, fast_mode=fast, check_fwd_over_rev=True, check_batched_grad=True)
    assert gradgradcheck(torch.sin, z, fast_mode=fast, gen_non_contig_grad_outputs=True)
    assert gradcheck(lambda a: a.detach() * 0, x, fast_mode=fast)
    assert gradcheck(lambda a: a * 2, torch.ones(0, dtype=torch.double, requires_grad=True), fast_mode=fast)


def calls_of(fast: bool) -> int:
    """How often gradcheck calls a function of a hundred numbers."""
    calls: list[int] = []

    def counted(a: Any) -> Any:
        calls.append(1)
        return a.sin()

    assert gradcheck(counted, leaf(*[n / 100 for n in range(100)]), fast_mode=fast)
    return len(calls)


def test_fast_mode_does_not_look_at_every_element() -> None:
    assert calls_of(fast=True) < 10 < 200 < calls_of(fast=False)


def test_a_wrong_gradient_is_shown_in_whole() -> None:
    with pytest.raises(GradcheckError) as caught:
        gradcheck(function(lambda g: g * 3, lambda a: a * 2), leaf(1.0, 2.0))
    assert str(caught.value) == (
        "Jacobian mismatch for output 0 with respect to input 0,\n"
        "numerical:tensor([[2.0000, 0.0000],\n        [0.0000, 2.0000]], dtype=torch.float64)\n"
        "analytical:tensor([[3., 0.],\n        [0., 3.]], dtype=torch.float64)\n"
    )


def test_fast_mode_shows_two_numbers_and_then_the_whole() -> None:
    with pytest.raises(GradcheckError) as caught:
        gradcheck(function(lambda g: g * 3, lambda a: a * 2), leaf(1.0, 2.0), fast_mode=True)
    first, *_, last = str(caught.value).rstrip("\n").split("\n")
    numerical, analytical = (float(line.split(":")[1]) for line in str(caught.value).split("\n")[1:3])
    assert first == "Jacobian mismatch for output 0 with respect to input 0,"
    assert analytical == pytest.approx(1.5 * numerical, rel=1e-3)
    assert last.startswith("The max per-element difference (slow mode) is: 1.00000")


def test_fast_mode_says_when_the_whole_would_have_passed() -> None:
    signs = torch.tensor([1000.0, -1000.0] * 50, dtype=torch.double)  # they nearly cancel, their faults do not
    near = function(lambda g: g * signs * (1 + 9e-4 * (signs > 0)), lambda a: a * signs)
    x = leaf(*[0.5] * 100)
    assert gradcheck(near, x)
    with pytest.raises(GradcheckError, match=r"might've passed in slow_mode!"):
        gradcheck(near, x, fast_mode=True)


counted = iter(range(100))
WRONG: list[tuple[Callable[[bool], Any], str]] = [
    (lambda f: gradcheck(function(lambda g: torch.ones_like(g)), leaf(1.0), fast_mode=f), "not multiplied by grad_"),
    (
        lambda f: gradcheck(function(lambda g: g + 1e-9 * next(counted)), leaf(1.0), fast_mode=f),
        "gives different values, although analytical gradient matches numerical gradient.The tolerance for",
    ),
    (
        lambda f: gradcheck(function(lambda g: g * 2, torch.square), leaf(1 + 2j), fast_mode=f),
        "While considering the imaginary part of complex outputs only, Jacobian mismatch for output 0 with respect to",
    ),
    (lambda f: gradcheck(lambda a: a.detach() * 2, leaf(1.0), fast_mode=f), "for function expected to be zero"),
    (
        lambda f: gradcheck(
            function(lambda g: g, jvp=lambda t: t * 7), leaf(1.0), check_forward_ad=True, check_backward_ad=False,
            fast_mode=f,
        ),
        "Jacobian computed with forward mode mismatch for output 0 with respect to input 0",
    ),
    (
        lambda f: gradcheck(
            lambda a: torch.stack([x * x.item() for x in a]), leaf(1.0), check_batched_grad=True, fast_mode=f,
            atol=10, check_undefined_grad=False,
        )
        and gradcheck(function(lambda g: g * (1 if g.sum() else 2)), leaf(1.0), check_batched_grad=True, fast_mode=f),
        "While computing batched gradients, got: vmap: It looks like you're attempting to use a Tensor in some",
    ),
]  # fmt: skip


@both
@pytest.mark.parametrize("number", range(len(WRONG)))
def test_what_is_found_wrong(number: int, fast: bool) -> None:
    call, text = WRONG[number]
    with pytest.raises(GradcheckError) as caught:
        call(fast)
    assert text in str(caught.value)


def test_bad_questions_are_refused() -> None:
    x = leaf(1.0, 2.0)
    for options in ({"check_backward_ad": False}, {"check_batched_forward_grad": True}):
        with pytest.raises(AssertionError, match="to be True"):
            gradcheck(torch.sin, x, **options)
    with pytest.raises(AssertionError, match="check_undefined_grad=True requires check_rev_over_rev to be True"):
        gradgradcheck(torch.sin, x, check_rev_over_rev=False, check_fwd_over_rev=True)
    with pytest.raises(AssertionError, match=r"same shape when inputs are perturbed on index \(0,\) by 1e-06"):
        gradcheck(lambda a: a[:1] if a.sum() > 3 else a, x)
    assert gradcheck(function(lambda g: g * 3), x, raise_exception=False, fast_mode=True) is False


def test_the_older_names_warn_and_work() -> None:
    x = leaf(0.0, 0.5)
    expected = torch.diag(x.detach().cos())
    with pytest.warns(FutureWarning, match="`get_numerical_jacobian` was part of PyTorch's private API"):
        (numerical,) = get_numerical_jacobian(lambda args: args[0].sin(), (x,))
    with pytest.warns(FutureWarning, match="`get_analytical_jacobian` was part"):
        jacobians, *fine = get_analytical_jacobian((x,), x.sin())
    assert torch.allclose(numerical, expected, atol=1e-6) and torch.equal(jacobians[0], expected)
    assert fine == [True, True, True]
