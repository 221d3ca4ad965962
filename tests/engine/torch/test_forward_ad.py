"""Forward-mode differentiation: what carries a tangent, and whose it is."""

from __future__ import annotations

from typing import Any

import pytest

from stridescope.engine import torch

fw: Any = torch.autograd.forward_ad
x, d = torch.tensor([0.2, 0.5]), torch.tensor([1.0, 2.0])


def tangent(function: Any) -> Any:
    with fw.dual_level():
        return fw.unpack_dual(function(fw.make_dual(x, d))).tangent


def test_tangents_are_pushed_through_ops_and_views() -> None:
    assert torch.allclose(tangent(torch.sin), d * x.cos())
    assert tangent(lambda a: a.view(2, 1)[1]).tolist() == [2.0]
    assert tangent(lambda a: a.detach()) is None


def test_a_flat_function_has_a_tangent_of_zeros() -> None:
    assert tangent(torch.floor).tolist() == tangent(torch.sign).tolist() == [0.0, 0.0]


def test_a_clone_has_a_tangent_of_its_own() -> None:
    assert tangent(lambda a: a.clone().mul_(3)).tolist() == [3.0, 6.0]
    assert d.tolist() == [1.0, 2.0]


def test_there_must_be_a_level_to_leave() -> None:
    with pytest.raises(RuntimeError, match="Dual level must be a positive number"):
        fw.exit_dual_level()


def function_of(forward: Any, jvp: Any) -> Any:
    return type("Made", (torch.autograd.Function,), {"forward": staticmethod(forward), "jvp": staticmethod(jvp)})


def pushed(function: Any) -> Any:
    with fw.dual_level():
        dual = fw.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([0.5, 0.25]))
        return fw.unpack_dual(function(dual)).tangent


def test_a_custom_function_pushes_by_its_own_jvp() -> None:
    def forward(ctx: Any, a: Any, factor: float) -> Any:
        ctx.save_for_forward(a)
        ctx.factor = factor
        return a * factor

    def jvp(ctx: Any, tangent: Any, nothing: Any) -> Any:
        assert nothing is None and ctx.saved_tensors[0].tolist() == [1.0, 2.0]
        return tangent * ctx.factor * 10

    assert pushed(lambda dual: function_of(forward, jvp).apply(dual, 3.0)).tolist() == [15.0, 7.5]


def test_a_custom_function_without_a_jvp_is_refused() -> None:
    made = type("Made", (torch.autograd.Function,), {"forward": staticmethod(lambda ctx, a: a * 2)})
    with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
        pushed(made.apply)


@pytest.mark.parametrize(
    ("forward", "jvp", "text"),
    [
        (lambda ctx, a: a * 2, lambda ctx, t: (t, t), "(expected 1 but got 2)"),
        (lambda ctx, a: a * 2, lambda ctx, t: 3, "expected Variable or None (got int) for grad output 0."),
        (lambda ctx, a: a * 2, lambda ctx, t: t[:1], "while the given forward gradient is of size [1]"),
        (lambda ctx, a: a.view(2, 1), lambda ctx, t: t.view(2, 1).clone(), "but the jvp is not returning a view"),
    ],
)
def test_what_a_jvp_may_not_return(forward: Any, jvp: Any, text: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        pushed(function_of(forward, jvp).apply)
    assert text in str(caught.value)


def test_levels() -> None:
    ones = torch.ones(2)
    with fw.dual_level():
        dual = fw.make_dual(ones, torch.ones(2))
        assert repr(dual) == "tensor([1., 1.], tangent=tensor([1., 1.]))"
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported at the moment"):
            fw.enter_dual_level()
        with pytest.raises(RuntimeError, match="already has a forward gradient at the same level 0"):
            fw.make_dual(dual, ones)
        with pytest.raises(RuntimeError, match="Invalid level given to _make_dual"):
            fw.make_dual(ones, ones, level=3)
    with fw.dual_level():
        assert fw.unpack_dual(dual).tangent is None


def test_a_write_into_a_part_gives_the_whole_a_tangent() -> None:
    with fw.dual_level():
        dual = fw.make_dual(torch.ones(2), torch.tensor([3.0, 4.0]))
        whole = torch.zeros(2)
        whole[1] = dual[0]
        assert fw.unpack_dual(whole).tangent.tolist() == [0.0, 3.0]


MATRIX = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
DIRECTION = torch.tensor([[1.0, 0.0], [0.0, 2.0]])


def matrix_tangent(function: Any) -> Any:
    with fw.dual_level():
        return fw.unpack_dual(function(fw.make_dual(MATRIX, DIRECTION))).tangent


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (torch.linalg.svdvals, [1.7236, 1.2764]),
        (torch.linalg.eigvalsh, [1.2764, 1.7236]),
        (lambda m: torch.norm(m, "nuc"), 3.0),
        (lambda m: torch.norm(m, 0), 0.0),
        (lambda m: torch.quantile(m, 0.25), 0.0),
        (lambda m: torch.ones(2) @ m, [1.0, 2.0]),
        (lambda m: torch.nn.functional.max_pool1d(m, 2), [[1.0], [2.0]]),
        (torch.nn.functional.hardsigmoid, [[1 / 6, 0.0], [0.0, 0.0]]),
    ],
)
def test_values_whose_derivative_needs_more_than_they_do(function: Any, expected: Any) -> None:
    assert torch.allclose(matrix_tangent(function), torch.tensor(expected), atol=1e-4)


def test_no_grad_does_not_keep_vectors_from_a_tangent() -> None:
    assert torch.allclose(matrix_tangent(torch.no_grad()(torch.linalg.svdvals)).sum(), torch.tensor(3.0))


def test_a_tangent_has_the_strides_of_its_primal() -> None:
    with fw.dual_level():
        dual = fw.make_dual(MATRIX.t(), DIRECTION)
        assert fw.unpack_dual(dual).tangent.stride() == (1, 2)
        whole = torch.cat((dual, dual), 1)
        assert fw.unpack_dual(whole).tangent.stride() == whole.stride()


def test_an_op_that_changes_sizes_in_place_changes_those_of_the_tangent() -> None:
    assert tangent(lambda a: a.clone().unsqueeze_(0).t_()).tolist() == [[1.0], [2.0]]
    assert tangent(lambda a: a.clone().as_strided_((1,), (1,), 1)).tolist() == [2.0]


def test_a_random_op_and_its_tangent_drop_the_same_and_draw_once() -> None:
    torch.manual_seed(0)
    plain = torch.nn.functional.dropout(torch.ones(50))
    after = torch.rand(1)
    torch.manual_seed(0)
    with fw.dual_level():
        dropped = torch.nn.functional.dropout(fw.make_dual(torch.ones(50), torch.ones(50)))
        assert fw.unpack_dual(dropped).tangent.equal(plain)
        assert dropped.equal(plain) and torch.rand(1).equal(after)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (torch.cholesky, "cholesky"),
        (lambda m: torch.cdist(m, m, 1.0), "_cdist_forward"),
        (lambda m: torch.unique_consecutive(m), "unique_consecutive"),
        (lambda m: torch.ones(2, 2).index_reduce_(0, torch.tensor([0, 1]), m, "mean"), "index_reduce_"),
        (lambda m: torch.nn.functional.embedding_bag(torch.tensor([[0, 1]]), m), "_embedding_bag"),
    ],
)
def test_ops_without_tangents_say_so(function: Any, name: str) -> None:
    with pytest.raises(NotImplementedError) as caught:
        matrix_tangent(function)
    ending = "." if name.endswith("_") else " or submit a PR adding the implementation to derivatives.yaml"
    assert str(caught.value) == (
        f"Trying to use forward AD with {name} that does not support it because it has not been implemented yet.\n"
        "Please file an issue to PyTorch at https://github.com/pytorch/pytorch/issues/new?template=feature-request.yml "
        f"so that we can prioritize its implementation{ending}"
    )


def test_out_has_no_tangent() -> None:
    with pytest.raises(NotImplementedError, match="forward AD with sin_out that does not support it because it is an"):
        matrix_tangent(lambda m: torch.sin(m, out=torch.empty(2, 2)))


POINT, SKEWED = torch.tensor([[4.0, 1.0], [1.0, 3.0]]), torch.tensor([[1.0, 2.0], [5.0, -1.0]])
# Along a direction that is not symmetric; what PyTorch 2.13 gives.
ALONG: list[tuple[str, Any, list[list[float]]]] = [
    ("eigenvectors", lambda a: torch.linalg.eigh(a)[1], [[-0.3154, 0.5104], [-0.1950, -0.8258]]),
    ("cholesky", torch.linalg.cholesky, [[0.25, 0.0], [2.4375, -0.8103]]),
    ("upper", lambda a: torch.linalg.cholesky(a, upper=True), [[0.25, 2.4375], [0.0, -0.8103]]),
    ("inverse", torch.cholesky_inverse, [[0.0347, -0.1838], [-0.1838, 0.1165]]),
    ("upper inverse", lambda a: torch.cholesky_inverse(a, upper=True), [[-0.0069, -0.1630], [-0.1630, 0.1582]]),
]


@pytest.mark.parametrize(("function", "expected"), [pytest.param(f, e, id=name) for name, f, e in ALONG])
def test_matrices_move_as_they_are_moved(function: Any, expected: list[list[float]]) -> None:
    _, pushed = torch.func.jvp(function, (POINT,), (SKEWED,))
    assert torch.allclose(pushed, torch.tensor(expected), atol=1e-4)


def test_infinite_terms_of_a_running_logsumexp_weigh_nothing() -> None:
    x = torch.tensor([-torch.inf, 1.0, torch.inf, 2.0])
    _, pushed = torch.func.jvp(lambda a: torch.logcumsumexp(a, 0), (x,), (torch.ones(4),))
    assert torch.allclose(pushed, torch.tensor([0.0, 0.0, torch.nan, torch.nan]), equal_nan=True)


def test_random_numbers_of_a_stretched_mean_have_no_tangents() -> None:
    with pytest.raises(RuntimeError, match=r"Tensor is of size \[2, 3\] while the given forward gradient is of size"):
        torch.func.jvp(lambda m: torch.normal(m, torch.ones(2, 3)), (torch.ones(3),), (torch.ones(3),))


def test_the_forward_jacobian_pushes_all_directions_in_one_call() -> None:
    calls: list[Any] = []
    several = lambda p: (calls.append(1), {"o": p["a"] ** 2 * p["b"]})[1]  # noqa: E731
    found = torch.func.jacfwd(several)({"a": torch.tensor([1.0, 2.0]), "b": torch.tensor(3.0)})
    assert calls == [1] and found["o"]["a"].tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert found["o"]["b"].tolist() == [1.0, 4.0]
    assert torch.func.jacfwd(lambda a: a**2)(torch.tensor(3.0)).item() == 6.0
    direction = lambda t: torch.func.jvp(torch.func.grad(lambda a: (a**3).sum()), (POINT[0],), (t,))[1]  # noqa: E731
    assert torch.func.vmap(direction)(torch.eye(2)).tolist() == [[24.0, 0.0], [0.0, 6.0]]
