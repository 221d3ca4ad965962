"""First and second derivatives of every differentiable op against finite differences, with complex numbers too.

Ops are met in two ways: by the samples of their declarations, and inside CALLS, calls of public functions that between
them reach every op whose arguments are more than shapes (indices, masks, options), the inner ones of PyTorch's names
and those of second derivatives too. What these calls hand an op stands for its samples.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stridescope.engine import torch
from stridescope.engine.dispatch.op import Op
from stridescope.engine.dispatch.recorded import Interceptors
from stridescope.engine.events import journal
from stridescope.engine.ops import OPS

F: Any = torch.nn.functional
L: Any = torch.linalg
t: Any = torch


class Leaves:
    """Whether the tensors of CALLS are leaves that require grad, and which were made."""

    def __init__(self) -> None:
        self.made: list[Any] | None = None

    def start(self) -> list[Any]:
        """From now on they are."""
        self.made = []
        return self.made

    def stop(self) -> None:
        """From now on they are not."""
        self.made = None

    def kept(self, tensor: Any) -> Any:
        """A tensor of a call."""
        if self.made is not None:
            self.made.append(tensor.requires_grad_())
        return tensor


LEAVES = Leaves()


def x(*shape: int, low: float = 0.2, high: float = 0.9) -> Any:
    """Numbers in double precision, all different."""
    return LEAVES.kept(t.rand(shape, dtype=t.float64) * (high - low) + low)


def c(*shape: int) -> Any:
    """Complex numbers in double precision."""
    return LEAVES.kept(t.complex(x(*shape), x(*shape)).detach())


def spd(size: int) -> Any:
    """A matrix that is symmetric and positive definite."""
    root = x(size, size)
    return root @ root.t() + t.eye(size, dtype=t.float64)


def i(*values: int) -> Any:
    """Indices."""
    return t.tensor(values)


def square(size: int) -> Any:
    """A matrix far from singular."""
    return x(size, size) + 2 * t.eye(size, dtype=t.float64)


ROWS = [[0, 2, 1], [2, 0, 0]]
CALLS: list[Callable[[], Any]] = [
    # products of images and windows
    lambda: F.conv2d(x(1, 2, 4, 4), x(3, 2, 2, 2), x(3)),
    lambda: F.conv1d(x(2, 2, 5), x(2, 1, 3), groups=2, padding=1),
    lambda: F.conv_transpose2d(x(1, 2, 3, 3), x(2, 1, 2, 2), x(1), stride=2),
    lambda: F.max_pool2d(x(1, 1, 4, 4), 2),
    lambda: F.max_pool3d(x(1, 1, 2, 4, 4), 2),
    lambda: F.avg_pool2d(x(1, 1, 4, 4), 2),
    lambda: F.avg_pool3d(x(1, 1, 2, 4, 4), 2),
    lambda: F.adaptive_avg_pool2d(x(1, 1, 4, 5), 2),
    lambda: F.adaptive_avg_pool3d(x(1, 1, 2, 3, 4), 2),
    lambda: F.adaptive_max_pool2d(x(1, 1, 4, 4), 2),
    lambda: F.adaptive_max_pool3d(x(1, 1, 2, 4, 4), 2),
    lambda: F.max_unpool2d(*F.max_pool2d(x(1, 1, 4, 4), 2, return_indices=True), 2),
    lambda: F.max_unpool3d(*F.max_pool3d(x(1, 1, 2, 2, 2), 2, return_indices=True), 2),
    lambda: F.fold(x(1, 4, 4), (3, 3), 2),
    lambda: F.unfold(x(1, 1, 3, 3), 2),
    *[
        lambda n=n, m=m: F.interpolate(x(1, 1, *[3] * n), scale_factor=2, mode=m)
        for n, m in (
            (1, "nearest"),
            (2, "nearest"),
            (3, "nearest"),
            (1, "nearest-exact"),
            (2, "nearest-exact"),
            (3, "nearest-exact"),
            (1, "linear"),
            (2, "bilinear"),
            (3, "trilinear"),
            (2, "bicubic"),
        )
    ],
    lambda: F.interpolate(x(1, 1, 4, 4), size=3, mode="bilinear", antialias=True),
    lambda: F.interpolate(x(1, 1, 4, 4), size=3, mode="bicubic", antialias=True),
    lambda: F.grid_sample(x(1, 1, 3, 3), x(1, 2, 2, 2, low=-0.4, high=0.4), align_corners=False),
    lambda: F.grid_sample(x(1, 1, 2, 3, 3), x(1, 1, 2, 2, 3, low=-0.4, high=0.4), align_corners=False),
    lambda: F.affine_grid(x(1, 2, 3), (1, 1, 2, 2), align_corners=False),
    *[
        lambda n=n, m=m: F.pad(x(1, 1, *[3] * n), [1, 1] * n, mode=m)
        for n in (1, 2, 3)
        for m in ("reflect", "replicate")
    ],
    # normalisation, losses, attention
    lambda: F.softmax(x(2, 3), 1),
    lambda: F.log_softmax(x(2, 3), 1),
    lambda: F.scaled_dot_product_attention(x(1, 1, 2, 3), x(1, 1, 2, 3), x(1, 1, 2, 3)),
    lambda: F.scaled_dot_product_attention(x(1, 1, 2, 3), x(1, 1, 2, 3), x(1, 1, 2, 3), x(2, 2)),
    lambda: t._safe_softmax(x(2, 3), 1),
    lambda: F.batch_norm(x(3, 2), t.zeros(2).double(), t.ones(2).double(), x(2), x(2), training=True),
    lambda: F.layer_norm(x(2, 3), (3,), x(3), x(3)),
    lambda: F.group_norm(x(2, 4, 2), 2, x(4), x(4)),
    lambda: F.instance_norm(x(2, 2, 3)),
    lambda: F.cross_entropy(x(2, 3), i(0, 2)),
    lambda: F.cross_entropy(x(1, 3, 2), t.tensor([[0, 2]])),
    lambda: F.binary_cross_entropy(x(2, 3), x(2, 3), t.rand(2, 3).double()),
    lambda: F.multi_margin_loss(x(2, 3), i(0, 2)),
    lambda: F.multilabel_margin_loss(x(1, 3), t.tensor([[1, -1, 0]])),
    lambda: F.prelu(x(2, 3, low=-1), x(3)),
    lambda: F.embedding(t.tensor(ROWS), x(3, 2)),
    lambda: F.embedding_bag(t.tensor(ROWS), x(3, 2), mode="sum"),
    lambda: F.embedding_bag(t.tensor(ROWS), x(3, 2), mode="mean"),
    # reading and writing by index
    lambda: x(3, 3).gather(1, t.tensor(ROWS)),
    lambda: x(3, 3).scatter(1, t.tensor([[0, 2, 1]]), x(1, 3)),
    lambda: x(3, 3).scatter(1, t.tensor(ROWS), 0.5),
    lambda: x(3, 3).scatter_add(1, t.tensor(ROWS), x(2, 3)),
    *[
        lambda r=r: x(3, 3).scatter_reduce(1, t.tensor([[0, 2, 1]]), x(1, 3), r)
        for r in ("sum", "prod", "mean", "amax")
    ],
    lambda: x(3, 3).index_add(1, i(0, 2), x(3, 2)),
    lambda: x(3, 3).index_reduce(1, i(0, 2), x(3, 2), "prod"),
    lambda: x(3, 3).index_copy(1, i(0, 2), x(3, 2)),
    lambda: x(3, 3).index_fill(1, i(0, 2), 0.5),
    lambda: x(3, 3).index_fill(1, i(0, 2), x()),
    lambda: x(3, 3).index_select(1, i(0, 2, 2)),
    lambda: x(2, 3).masked_scatter(t.eye(2, 3).bool(), x(2)),
    lambda: x(2, 3).masked_select(t.eye(2, 3).bool()),
    lambda: x(2, 3).masked_fill(t.eye(2, 3).bool(), 0.5),
    lambda: x(2, 3).masked_fill(t.eye(2, 3).bool(), x()),
    lambda: x(2, 3).take(i(0, 4, 4)),
    lambda: x(2, 3).put(i(0, 4), x(2), accumulate=True),
    lambda: x(3, 3)[i(0, 2)],
    lambda: x(3, 3).index_put((i(0, 2),), x(2, 3)),
    lambda: t._unsafe_masked_index(x(3), t.tensor([True, False]), [i(0, 2)], 0.0),
    lambda: t._unsafe_masked_index_put_accumulate(x(3), t.tensor([True, False]), [i(0, 2)], x(2)),
    lambda: t.where(t.eye(2, 3).bool(), x(2, 3), x(3)),
    lambda: x(2, 3).sort(stable=True, dim=1),
    lambda: t._segment_reduce(x(4), "sum", lengths=i(1, 3)),
    # views, and the ops that undo them
    lambda: x(3, 3)[1],
    lambda: x(3, 3)[:, 1:],
    lambda: x(3, 3).diagonal(),
    lambda: x(4).unfold(0, 2, 1),
    lambda: t.alias_copy(x(2)),
    lambda: x(2, 3).unsafe_split(1),
    lambda: x(2, 3).unsafe_split_with_sizes([1, 1]),
    lambda: t.cat([x(2, 2), x(1, 2)]),
    lambda: t.stack([x(2), x(2)]),
    lambda: t.block_diag(x(1, 2), x(2, 1)),
    lambda: t.view_as_real(c(2)),
    lambda: t.view_as_complex(x(2, 2)),
    lambda: c(2).conj(),
    lambda: c(2).conj().imag,
    lambda: c(2).conj_physical(),
    lambda: x(2).to(t.complex128),
    lambda: t.transpose_copy(x(2, 3), 0, 1),
    lambda: t.t_copy(x(2, 3)),
    lambda: t.permute_copy(x(2, 3), (1, 0)),
    lambda: t.view_copy(x(2, 3), (3, 2)),
    lambda: t.expand_copy(x(1, 3), (2, 3)),
    lambda: t.unsqueeze_copy(x(2), 0),
    lambda: t.squeeze_copy(x(1, 2)),
    lambda: t.squeeze_copy(x(1, 2), 0),
    lambda: t.squeeze_copy(x(1, 2), (0,)),
    lambda: t.select_copy(x(2, 3), 0, 1),
    lambda: t.slice_copy(x(3), 0, 1, 3),
    lambda: t.diagonal_copy(x(3, 3)),
    lambda: t.unfold_copy(x(4), 0, 2, 1),
    lambda: t.as_strided_copy(x(4), (2, 2), (2, 1)),
    lambda: t.split_copy(x(4), 2),
    lambda: t.split_with_sizes_copy(x(4), (1, 3)),
    lambda: t.unbind_copy(x(2, 2)),
    lambda: t.narrow_copy(x(4), 0, 1, 2),
    lambda: t.select_scatter(x(2, 3), x(3), 0, 1),
    lambda: t.slice_scatter(x(3), x(2), 0, 1, 3),
    lambda: t.diagonal_scatter(x(3, 3), x(3)),
    lambda: t.as_strided_scatter(x(4), x(2, 1), (2, 1), (2, 1)),
    # linear algebra
    lambda: L.svd(x(2, 3), full_matrices=False),
    lambda: L.eigh(spd(3)),
    lambda: L.eigvals(square(2)),
    lambda: L.pinv(square(2)),
    lambda: L.lstsq(x(3, 2), x(3, 1)),
    lambda: L.lu(square(3)),
    lambda: L.lu_solve(*L.lu_factor(square(2)), x(2, 2)),
    lambda: L.det(square(2)),
    lambda: L.slogdet(square(2)),
    lambda: L.solve(square(2), x(2, 2)),
    lambda: L.solve_triangular(square(2), x(2, 2), upper=True),
    lambda: t.triangular_solve(x(2, 2), square(2)),
    lambda: L.cholesky(spd(2)),
    lambda: t.cholesky(spd(2)),
    lambda: t.cholesky_solve(x(2, 1), spd(2)),
    lambda: t.cholesky_inverse(spd(2)),
    lambda: L.qr(square(2)),
    lambda: L.householder_product(x(3, 2), x(2)),
    lambda: t.ormqr(x(3, 2), x(2), x(3, 2)),
    lambda: F.pairwise_distance(x(2, 3), x(2, 3)),
    lambda: t._native_batch_norm_legit(x(3, 2), x(2), x(2), t.zeros(2).double(), t.ones(2).double(), True, 0.1, 1e-5),
    lambda: t._native_batch_norm_legit(x(3, 2), x(2), x(2), True, 0.1, 1e-5),
    lambda: t._pack_padded_sequence(x(3, 2, 2), i(3, 1), False),
    # numbers
    lambda: x(2).div(x(2), rounding_mode=None),
    lambda: t.fill(x(2), 0.5),
    lambda: t.fill(x(2), x()),
    lambda: t.fft.fft(c(3)),
    lambda: t.fft.rfft(x(4)),
    lambda: t.fft.irfft(c(3)),
    lambda: t.cdist(x(2, 3), x(2, 3, low=2.0, high=3.0)),
    lambda: t.cdist(x(2, 3), x(2, 3, low=2.0, high=3.0), compute_mode="use_mm_for_euclid_dist"),
    lambda: F.pdist(x(3, 2)),
    lambda: t.xlogy(x(2), x(2)),
    lambda: t.xlogy(0.5, x(2)),
    lambda: t.xlogy(x(2), 0.5),
    lambda: t.special.xlog1py(x(2), x(2)),
    lambda: t.special.xlog1py(0.5, x(2)),
    lambda: t.special.xlog1py(x(2), 0.5),
    lambda: t.special.zeta(2.0, x(2)),
    lambda: t.pow(2.0, x(2)),
    lambda: t.polygamma(1, x(2)),
    lambda: t.mvlgamma(x(2) + 2, 2),
    lambda: t.cdist(x(3, 2), x(4, 2), compute_mode="use_mm_for_euclid_dist"),
    lambda: t.frexp(x(2)),
    lambda: t.round(x(2), decimals=1),
    lambda: t.nextafter(x(2), x(2)),
    lambda: x(2, 3).var(1),
    lambda: x(2, 3).std(1, correction=0),
    lambda: t.var_mean(x(2, 3), 1),
    lambda: t.std_mean(x(2, 3), 1),
]


# ---- what a call consists of ---------------------------------------------------------------------------------------

Met = dict[str, tuple[Op, tuple[Any, ...]]]


def differentiable(op: Op) -> bool:
    return op.derivative is not None and not op.schema.writes and op.derivative.name not in NEVER


# Nodes that refuse to run, whose outputs have no second derivative in PyTorch either.
NEVER = ("NotImplemented",)
# Their results are random, or do not depend on the values; or PyTorch has no derivative for them and says so.
WITHOUT = frozenset((
    "_cdist_backward", "_ctc_loss", "_embedding_bag_backward", "_pdist_backward", "_rrelu_with_noise",
    "_standard_gamma", "_unique2", "alias", "bernoulli", "binomial", "fractional_max_pool2d",
    "fractional_max_pool2d_backward", "fractional_max_pool3d",
    "fractional_max_pool3d_backward", "geqrf", "igamma", "igammac", "mkldnn_rnn_layer",
    "native_dropout", "normal.Tensor_Tensor", "normal.Tensor_float", "normal.float_Tensor", "poisson", "special_zeta",
    "special_zeta.other_scalar", "unique_consecutive", "unique_dim",
))  # fmt: skip
# PyTorch's own formula gives something else: as_strided_scatter keeps the gradient of the part that was replaced. And
# _conj and _neg_view are only right with the flag that their callers, conj() and imag, put on the result.
OTHERWISE = frozenset(("_conj", "_neg_view", "as_strided_scatter"))
WANTED = {op.qualified: op for op in OPS if differentiable(op) and op.qualified not in WITHOUT | OTHERWISE}


def met_in(call: Callable[[], Any], create_graph: bool = True) -> Met:
    """Every differentiable op that the call runs, forward and in its first two derivatives, with its arguments."""
    met: Met = {}

    def watch(op: Op, core: Callable[..., Any], *args: Any) -> Any:
        if op.qualified in WANTED and not op.samples and any(tracked(a) for a in flat(args)):
            met.setdefault(op.qualified, (op, args))
        return core(*args)

    Interceptors.before.append(watch)
    journal.require_full(1)
    try:
        _twice(call)
    finally:
        Interceptors.before.remove(watch)
        journal.require_full(-1)
    return met


def _twice(call: Callable[[], Any]) -> None:
    """Run the call on leaves, and differentiate it twice."""
    made = LEAVES.start()
    try:
        results = [r for r in flat(call()) if isinstance(r, torch.Tensor) and r.requires_grad]
    finally:
        LEAVES.stop()
    found: Any = results
    for _ in range(2):
        if not found:
            return
        starts = [torch.rand_like(r).requires_grad_() for r in found]
        try:
            grads = torch.autograd.grad(found, [*made], starts, create_graph=True, allow_unused=True)
        except RuntimeError as error:
            assert "is not implemented" in str(error) or "not in Stridescope yet" in str(error), error
            return
        made = [*made, *starts]
        found = [g for g in grads if g is not None and g.requires_grad]


def flat(value: Any) -> list[Any]:
    return [v for item in value for v in flat(item)] if isinstance(value, (tuple, list)) else [value]


def tracked(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad and value.dtype in (torch.float64, torch.complex128)


# ---- checking an op ------------------------------------------------------------------------------------------------

# Factors of a matrix are only fixed up to signs or phases: these combinations are fixed.
FIXED: dict[str, Callable[..., Any]] = {
    "_linalg_svd": lambda u, s, vh: (s, (u * s) @ vh),
    "_linalg_eigh": lambda w, v: (w, (v * w) @ v.mH),
    "linalg_eig": lambda w, v: (w,),
    "linalg_lstsq": lambda solution, *rest: (solution,),
}
# Read as symmetric or triangular whatever stands in the other half, which finite differences would move, too.
HALVED: dict[str, Callable[..., Any]] = {
    "_linalg_eigh": lambda a: (a + a.mH) / 2,
    "cholesky": lambda a: (a + a.mH) / 2,
    "cholesky_inverse": lambda a: a.tril(),
    "cholesky_solve": lambda a: a.tril() if a.shape[0] == a.shape[1] else a,
    "linalg_cholesky_ex": lambda a: (a + a.mH) / 2,
    "linalg_solve_triangular": lambda a: a.triu() if a.shape[0] == a.shape[1] else a,
    "triangular_solve": lambda a: a,
}
# Second derivatives that PyTorch does not have either.
FIRST_ONLY = frozenset((
    "_cdist_forward", "_embedding_bag", "_pdist_forward", "_scaled_dot_product_flash_attention_for_cpu",
    "_segment_reduce", "multi_margin_loss", "multilabel_margin_loss_forward",
))  # fmt: skip


def check(op: Op, args: tuple[Any, ...]) -> None:
    """gradcheck and gradgradcheck of an op as a function of its tensors in double precision."""
    named = zip(op.schema.arguments, args, strict=False)
    places = [n for n, (a, value) in enumerate(named) if a.name in op.derivative.inputs and value is not None]  # type: ignore[union-attr]
    points = [p for n in places for p in flat(args[n]) if tracked(p)]
    inputs = tuple(p.detach().clone().requires_grad_() for p in points)

    def function(*changed: Any) -> Any:
        remaining = iter(changed)
        given = [_put(value, remaining) if n in places else value for n, value in enumerate(args)]
        if op.name in HALVED:
            given = [HALVED[op.name](g) if n in places else g for n, g in enumerate(given)]
        results = op(*given)
        if op.name in FIXED:
            results = FIXED[op.name](*results)
        return flat(results)

    numbers = [n for n, r in enumerate(function(*inputs)) if tracked(r)]
    wanted = lambda *changed: tuple(function(*changed)[n] for n in numbers)  # noqa: E731
    assert torch.autograd.gradcheck(wanted, inputs, check_undefined_grad=False)
    if op.name not in FIRST_ONLY:
        assert torch.autograd.gradgradcheck(wanted, inputs, check_undefined_grad=False)


def _put(value: Any, points: Iterator[Any]) -> Any:
    if isinstance(value, (tuple, list)):
        return [_put(item, points) for item in value]
    return next(points) if tracked(value) else value


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module")
def met() -> Met:
    found: Met = {}
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in CALLS:
            found = met_in(call) | found
    return found


@pytest.mark.parametrize("name", [name for name, op in WANTED.items() if not op.samples])
def test_derivatives_are_those_of_finite_differences(name: str, met: Met) -> None:
    check(*met[name])


@pytest.mark.parametrize("function", [lambda a: a.conj() * a, lambda a: a.conj().imag, lambda a: (-a).conj().real])
def test_lazily_conjugated_numbers_have_right_derivatives(function: Any) -> None:
    point = c(2).requires_grad_()
    assert torch.autograd.gradcheck(function, (point,))
    assert torch.autograd.gradgradcheck(function, (point,))


SECOND = ("hardsigmoid", "multi_margin_loss", "multilabel_margin_loss")


@pytest.mark.parametrize("name", SECOND)
def test_a_second_derivative_that_does_not_exist_is_refused(name: str) -> None:
    points = {"hardsigmoid": (x(3),), "multi_margin_loss": (x(2, 3), i(0, 2)),
              "multilabel_margin_loss": (x(1, 3), t.tensor([[1, -1, 0]]))}[name]  # fmt: skip
    leaf = points[0].requires_grad_()
    start = torch.ones(()).double().requires_grad_()
    (first,) = torch.autograd.grad(getattr(F, name)(*points).sum(), leaf, start, create_graph=True)
    assert first.grad_fn.name() == "torch::autograd::NotImplemented"
    with pytest.raises(RuntimeError, match=f"derivative for aten::{name}_backward is not implemented"):
        first.sum().backward()


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_rows_have_no_second_derivative(mode: str) -> None:
    table = x(4, 3).requires_grad_()
    bags = F.embedding_bag(i(0, 2, 1, 3), table, i(0, 2), mode=mode)
    start = torch.ones_like(bags).requires_grad_()
    (first,) = torch.autograd.grad(bags, table, start, create_graph=True)
    assert first.grad_fn.name() == "EmbeddingBagBackwardBackward0"
    assert [node and node.name() for node, _ in first.grad_fn.next_functions] == [
        "torch::autograd::AccumulateGrad", None
    ]  # fmt: skip
    with pytest.raises(NotImplementedError, match="derivative for '_embedding_bag_backward' is not implemented"):
        first.sum().backward()


def test_weights_of_rows_in_bags_have_no_second_derivative() -> None:
    table, weights = x(4, 3).requires_grad_(), x(4).requires_grad_()
    bags = F.embedding_bag(i(0, 2, 1, 3), table, i(0, 2), mode="sum", per_sample_weights=weights)
    of_table, of_weights = torch.autograd.grad(bags.sum(), (table, weights), create_graph=True)
    assert of_table.grad_fn.name() == "EmbeddingBagBackwardBackward0"
    assert of_weights.grad_fn.name() == "torch::autograd::NotImplemented"
    with pytest.raises(RuntimeError, match="aten::_embedding_bag_per_sample_weights_backward is not implemented"):
        of_weights.sum().backward()


def test_gradients_of_bags_are_scaled_by_the_counts_that_pytorch_takes() -> None:
    table = torch.ones(5, 1, requires_grad=True)
    F.embedding_bag(i(0, 2, 2, 4, 1, 1, 3), table, i(0, 2, 2, 6), mode="sum", scale_grad_by_freq=True).sum().backward()
    assert table.grad.reshape(-1).tolist() == [1.0, 1.0, 1.0, 0.5, 0.5]
