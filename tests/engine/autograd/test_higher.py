"""Graphs of higher derivatives: their nodes, what ops save and in which order, and that all of it goes when it can."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stridescope.engine import torch

checkpoint: Any = torch.utils.checkpoint
F: Any = torch.nn.functional


def leaf(*values: float) -> Any:
    return torch.tensor(values, requires_grad=True)


def names(tensor: Any) -> list[str]:
    """The nodes below a tensor, depth first; a dash where an edge leads nowhere."""
    found, stack = [], [tensor.grad_fn]
    while stack:
        node = stack.pop()
        found.append("-" if node is None else node.name().removeprefix("torch::autograd::"))
        stack.extend(child for child, _ in reversed(node.next_functions if node is not None else ()))
    return found


# What PyTorch 2.13 has: C++ multiplies by numbers with another op than Python, and has ops for whole formulas.
SECOND: list[tuple[str, Callable[[Any], Any], str]] = [
    ("square", lambda x: x**2, "MulBackward0 AccumulateGrad MulBackward1 PowBackward0 AccumulateGrad"),
    ("times", lambda x: x * 2, "MulBackward0 AccumulateGrad -"),
    ("mean", lambda x: x.mean(), "DivBackward1 ExpandBackward0 AccumulateGrad"),
    ("tanh", lambda x: x.tanh(), "TanhBackwardBackward0 AccumulateGrad TanhBackward0 AccumulateGrad"),
    ("relu", lambda x: x.relu(), "ThresholdBackwardBackward0 AccumulateGrad ReluBackward0 AccumulateGrad"),
    ("softmax", lambda x: x.softmax(0), "SoftmaxBackwardDataBackward0 AccumulateGrad SoftmaxBackward0 AccumulateGrad"),
    ("gelu", F.gelu, "GeluBackwardBackward0 AccumulateGrad AccumulateGrad"),
    ("clamp", lambda x: x.clamp(0, 1), "WhereBackward0 AccumulateGrad -"),
    ("index", lambda x: x[torch.tensor([0])], "IndexPutImplBackward0 - AccumulateGrad"),
    ("hardsigmoid", F.hardsigmoid, "NotImplemented AccumulateGrad AccumulateGrad"),
]


@pytest.mark.parametrize(("function", "expected"), [pytest.param(f, text, id=name) for name, f, text in SECOND])
def test_the_graph_of_a_gradient_is_pytorchs(function: Callable[[Any], Any], expected: str) -> None:
    x = leaf(0.5, 1.5)
    y = function(x)
    (gradient,) = torch.autograd.grad(y, x, torch.ones_like(y).requires_grad_(), create_graph=True)
    assert " ".join(names(gradient)) == expected


def test_third_derivatives_go_on_with_pytorchs_formulas() -> None:
    x = leaf(0.3)
    (first,) = torch.autograd.grad(x.sigmoid(), x, create_graph=True)
    (second,) = torch.autograd.grad(first, x, create_graph=True)
    (third,) = torch.autograd.grad(second, x)
    s = x.detach().sigmoid()
    assert torch.allclose(third, s * (1 - s) * (1 - 6 * s + 6 * s**2))


def saved_and_unpacked(function: Callable[[], Any]) -> tuple[list[Any], list[Any]]:
    packed: list[Any] = []
    unpacked: list[Any] = []
    hooks = (lambda t: (packed.append(tuple(t.shape)), t)[1], lambda t: (unpacked.append(tuple(t.shape)), t)[1])
    with torch.autograd.graph.saved_tensors_hooks(*hooks):
        result = function()
    result.sum().backward()
    return packed, unpacked


def test_tensors_are_saved_in_the_order_of_their_names_and_unpacked_once() -> None:
    ones = lambda *sizes: torch.ones(sizes, requires_grad=True)  # noqa: E731
    assert saved_and_unpacked(lambda: ones(2, 1) * ones(1, 3)) == ([(1, 3), (2, 1)], [(1, 3), (2, 1)])
    power = [(1, 3), (2, 1), (2, 3)]  # exponent, self, and then the result
    assert saved_and_unpacked(lambda: ones(2, 1) ** ones(1, 3)) == (power, power)


def test_saved_values_are_shown_as_pytorch_shows_them() -> None:
    x = leaf(1.0, 2.0)
    assert (x + 2).grad_fn._saved_alpha == 1
    assert x.softmax(-1).grad_fn._saved_dim == 2**64 - 1  # without a sign
    node = F.cross_entropy(torch.ones(1, 2, requires_grad=True), torch.tensor([0])).grad_fn
    assert node._saved_weight is None and "_raw_saved_weight" in dir(node)


def test_gradients_of_reads_count_their_writes() -> None:
    for read, version in ((lambda x: x[torch.tensor([0])], 1), (lambda x: x.max(0).values, 2), (lambda x: x * 2, 0)):
        x = leaf(1.0, 2.0)
        read(x).sum().backward()
        assert x.grad._version == version


def test_a_product_hands_each_factor_a_gradient_in_its_own_layout() -> None:
    a, b = torch.ones(2, 3).t().requires_grad_(), torch.ones(2, 4, requires_grad=True)
    first, second = torch.autograd.grad((a @ b).sum(), (a, b))
    assert first.stride() == (1, 3) and second.stride() == (4, 1)


def test_the_second_derivative_of_a_convolution_without_bias() -> None:
    image = torch.arange(9.0).reshape(1, 1, 3, 3).requires_grad_()
    weight = torch.ones(1, 1, 2, 2, requires_grad=True)
    (gradient,) = torch.autograd.grad(F.conv2d(image, weight).sum(), weight, create_graph=True)
    (second,) = torch.autograd.grad((gradient**2).sum(), image)
    assert second.flatten().tolist() == [16.0, 40.0, 24.0, 56.0, 128.0, 72.0, 40.0, 88.0, 48.0]
    assert gradient.grad_fn.name() == "ConvolutionBackwardBackward0"


# ---- nothing is kept alive -------------------------------------------------------------------------------------------


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Without the cycle collector: what is freed is freed by reference counts alone."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Kept(torch.autograd.Function):
    """Saves its result."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """Exponentials."""
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Times the result."""
        return grads[0] * ctx.saved_tensors[0]


def written(x: Any) -> Any:
    y = x * 1
    for _ in range(500):
        y[0].mul_(1.0)
    return y


def hooked(x: Any) -> Any:
    y = x
    for _ in range(100):
        y = y * 1.0
        y.register_hook(lambda grad: grad)
        y.retain_grad()
        y.grad_fn.register_prehook(lambda grads: None)
    return y


def twice(x: Any) -> Any:
    (gradient,) = torch.autograd.grad(Kept.apply(x).tanh().sum(), x, create_graph=True)
    return gradient


GRAPHS: dict[str, Callable[[Any], Any]] = {
    "custom": lambda x: Kept.apply(Kept.apply(x)),
    "writes": written,
    "hooks": hooked,
    "double backward": twice,
    "checkpoint": lambda x: checkpoint.checkpoint(torch.sin, x.exp(), use_reentrant=False),
    "reentrant": lambda x: checkpoint.checkpoint(torch.sin, x.exp(), use_reentrant=True),
    "views": lambda x: torch.stack(x.exp().unbind(0)),
}


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("run", [False, True], ids=["dropped", "run"])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_goes_with_its_last_reference(name: str, run: bool) -> None:
    x = leaf(0.5, 1.5)
    y = GRAPHS[name](x)
    nodes = [weakref.ref(y.grad_fn)]
    while (child := next((c for c, _ in nodes[-1]().next_functions if c is not None), None)) is not None:
        nodes.append(weakref.ref(child))
    if run:
        y.sum().backward()
    del y, child
    x.grad = None
    assert [node().name() for node in nodes if node() is not None and not hasattr(node(), "variable")] == []


def graph_of(tensor: Any) -> list[tuple[str, list[Any]]]:
    """The nodes below a tensor, breadth first: each one's name and the numbers of its children."""
    numbers = {tensor.grad_fn: 0}
    queue = [tensor.grad_fn]
    found = []
    for node in queue:
        for child, _ in node.next_functions:
            if child is not None and child not in numbers:
                numbers[child] = len(queue)
                queue.append(child)
        name = node.name().removeprefix("torch::autograd::")
        found.append((name, [None if child is None else numbers[child] for child, _ in node.next_functions]))
    return found


LEAF = ("AccumulateGrad", [])


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: F.max_pool2d(x, 1), [("MaxPool2DWithIndicesBackwardBackward0", [None, 1]), LEAF]),
        (lambda x: F.avg_pool2d(x, 1), [("AvgPool2DBackwardBackward0", [None, 1]), LEAF]),
        (lambda x: F.adaptive_max_pool2d(x, 1), [("AdaptiveMaxPool2DBackwardBackward0", [None, 1]), LEAF]),
        (lambda x: F.pad(x, (1, 1, 1, 1), "replicate"), [("ReplicationPad2DBackwardBackward0", [None, 1]), LEAF]),
        (lambda x: F.logsigmoid(x), [("LogSigmoidBackwardBackward0", [None, 1]), LEAF]),
        (lambda x: F.celu(x), [("EluBackwardBackward0", [None, 1]), LEAF]),
        (lambda x: F.layer_norm(x, (2, 2)), [("NativeLayerNormBackwardBackward0", [None, 1] + [None] * 4), LEAF]),
        (
            lambda x: F.batch_norm(x, None, None, training=True),
            [("NativeBatchNormBackwardBackward0", [None, 1, None, None, None]), LEAF],
        ),
        (lambda x: x.var(), [("MulBackward0", [None, 1]), ("SubBackward0", [2, 3]), LEAF, ("MeanBackward0", [2])]),
        (lambda x: F.hardsigmoid(x), [("NotImplemented", [1]), LEAF]),
    ],
)
def test_a_gradient_has_the_graph_of_pytorch(function: Any, expected: Any) -> None:
    x = torch.arange(8.0).reshape(2, 1, 2, 2).requires_grad_()
    out = function(x)
    (gradient,) = torch.autograd.grad(out, x, torch.ones_like(out), create_graph=True)
    assert graph_of(gradient) == expected


def test_the_gradient_of_a_target_has_the_arguments_the_other_way_round() -> None:
    x, target = torch.ones(3, requires_grad=True), torch.zeros(3, requires_grad=True)
    gradients = torch.autograd.grad(F.mse_loss(x, target), (x, target), create_graph=True)
    leaves = [[child and child.variable for child, _ in g.grad_fn.next_functions] for g in gradients]
    assert [[leaf is x if leaf is not None else None for leaf in row] for row in leaves] == [
        [None, True, False],
        [None, False, True],
    ]


def test_a_flat_second_derivative_is_zeros() -> None:
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    (first,) = torch.autograd.grad(F.leaky_relu(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.tolist() == [0.0, 0.0]


def test_the_gradient_inside_a_written_view_is_row_major() -> None:
    x, base = torch.ones(3, 2, requires_grad=True), torch.zeros(2, 3)
    base.t().add_(x)
    base.exp().sum().backward()
    assert x.grad.stride() == (2, 1) and x.grad._version == 0


@pytest.mark.parametrize(
    ("again", "options", "text"),
    [
        (lambda a: a.sin(), {}, "A different number of tensors was saved"),
        (lambda a: a.sin().exp().cos(), {"early_stop": False}, "trying to save more tensors during recomputation than"),
    ],
)
def test_a_checkpoint_that_saves_otherwise_is_refused(again: Any, options: Any, text: str) -> None:
    runs: list[int] = []

    def changing(a: Any) -> Any:
        runs.append(1)
        return a.sin().exp() if len(runs) == 1 else again(a)

    out = checkpoint.checkpoint(changing, leaf(1.0), use_reentrant=False, **options)
    with pytest.raises(checkpoint.CheckpointError) as caught:
        out.sum().backward()
    assert text in str(caught.value) and str(caught.value).endswith("workaround examples.\n")


@pytest.mark.parametrize("running", [torch.cummax, torch.cummin])
def test_the_gradient_of_running_extremes_of_nothing_is_their_input(running: Callable[..., Any]) -> None:
    x = torch.zeros(2, 0, requires_grad=True)
    values, _ = running(x, 0)
    (first,) = torch.autograd.grad(values, x, torch.ones_like(values), create_graph=True)
    assert first is x


def test_the_product_of_nothing_has_a_second_derivative() -> None:
    x = torch.zeros(2, 0, requires_grad=True)
    (first,) = torch.autograd.grad(x.prod(), x, create_graph=True)
    assert names(first)[:3] == ["MulBackward0", "-", "DivBackward0"]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: x.amax(-1), "amax"),
        (lambda x: x.softmax(0), "_softmax"),
        (lambda x: x.median(), "median"),
        (lambda x: x.bernoulli(), "bernoulli"),
    ],
)
def test_derivatives_for_real_numbers_only(call: Callable[..., Any], name: str) -> None:
    x = torch.zeros(0, 2, dtype=torch.complex64, requires_grad=True)
    with pytest.raises(RuntimeError, match=f"^{name} does not support automatic differentiation for outputs with comp"):
        call(x)
