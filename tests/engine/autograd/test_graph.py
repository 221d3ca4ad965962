"""Nodes, edges, saved tensors and their lifetime."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from stridescope.engine import torch


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Without the cycle collector: what is freed is freed by reference counts alone."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def leaf(*values: float) -> Any:
    return torch.tensor(values, requires_grad=True)


def test_edges_lead_to_leaves_and_carry_input_numbers() -> None:
    x, y = leaf(1.0), leaf(2.0)
    node = (x * y).grad_fn
    assert node.name() == "MulBackward0"
    (first, a), (second, b) = node.next_functions
    assert first.variable is x and second.variable is y and (a, b) == (0, 0)
    assert first.name() == "torch::autograd::AccumulateGrad"


def test_outputs_of_one_node_have_numbers() -> None:
    parts = leaf(1.0, 2.0).unbind()
    assert parts[0].grad_fn is parts[1].grad_fn
    assert [part.output_nr for part in parts] == [0, 1]


def test_saved_tensors_have_pytorchs_names() -> None:
    x = leaf(1.0, 2.0)
    node = (x * 2).grad_fn
    assert node._saved_self is None and node._saved_other.item() == 2
    assert x.exp().grad_fn._saved_result.tolist() == x.exp().tolist()
    assert [name for name in dir(x.pow(2).grad_fn) if "saved" in name] == [
        "_raw_saved_self", "_saved_exponent", "_saved_self",
    ]  # fmt: skip


@pytest.mark.parametrize(("make", "freed"), [(lambda x: x * 2, True), (lambda x: x + 2, False), (lambda x: -x, False)])
def test_second_backward_fails_only_where_something_was_freed(make: Any, freed: bool) -> None:
    y = make(leaf(1.0))
    y.backward()
    if freed:
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
            y.backward()
    else:
        y.backward()


@pytest.mark.usefixtures("no_collector")
def test_a_graph_is_freed_without_the_collector() -> None:
    x = leaf(1.0, 2.0)
    x.register_hook(lambda grad: None)
    x.register_post_accumulate_grad_hook(lambda tensor: None)
    middle = x.sin()
    middle.retain_grad()
    view = middle[:1]
    view.mul_(2)
    alive = [weakref.ref(each) for each in (x, middle, middle.grad_fn, view.grad_fn)]
    middle.sum().backward()
    del x, middle, view
    assert [reference() for reference in alive] == [None] * 4


@pytest.mark.usefixtures("no_collector")
def test_a_custom_function_that_saves_its_output_is_freed() -> None:
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0]

    y = Exp.apply(leaf(1.0))
    node = weakref.ref(y.grad_fn)
    del y
    assert node() is None


@pytest.mark.usefixtures("no_collector")
def test_arguments_of_a_call_that_another_overload_refused_are_freed() -> None:
    x = leaf(1.0, 2.0)
    total = x.sum(0, True)
    node = weakref.ref(total.grad_fn)
    del total
    assert node() is None


def test_a_long_chain_is_built_walked_and_freed() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(100_000):
        y = y + 1.0
    deepest = weakref.ref(y.grad_fn.next_functions[0][0])
    y.backward()
    assert x.grad.tolist() == [1.0]
    del y
    assert deepest() is None


def test_a_wide_graph_is_walked() -> None:
    x = leaf(1.0)
    total = torch.zeros(1)
    for _ in range(20_000):
        total = total + x
    total.backward()
    assert x.grad.tolist() == [20_000.0]


def test_gradient_edges_stand_for_tensors() -> None:
    x = leaf(2.0)
    y = x * 3
    edge = torch.autograd.graph.get_gradient_edge(y)
    assert torch.autograd.grad((y * y).sum(), edge)[0].tolist() == [12.0]
    with pytest.raises(RuntimeError, match="does not require gradients"):
        torch.autograd.graph.get_gradient_edge(torch.ones(1))


def test_metadata_stays_with_the_node() -> None:
    y = leaf(1.0) * 2
    y.grad_fn.metadata["note"] = 5
    assert y.grad_fn.metadata == {"note": 5}


def test_node_creation_hook_sees_every_node() -> None:
    seen: list[str] = []
    with torch.autograd.graph.node_creation_hook(lambda node: seen.append(node.name())):
        (leaf(1.0) * 2).exp()
    assert seen == ["MulBackward0", "ExpBackward0"]


def test_inference_mode_tracks_nothing_whatever_grad_mode_says() -> None:
    x = torch.ones(3, requires_grad=True)
    with torch.inference_mode(), torch.enable_grad():
        assert torch.is_grad_enabled()
        made = x * 2
        assert made.is_inference() and not made.requires_grad and made.grad_fn is None
    assert torch.is_grad_enabled()


def test_inference_tensors_alone_are_not_tracked_outside_either() -> None:
    with torch.inference_mode():
        leaf = torch.ones(2, requires_grad=True)
    assert leaf.requires_grad
    assert [made.requires_grad for made in (leaf.view(2), leaf + leaf, leaf.exp(), torch.cat([leaf, leaf]))] == [
        False
    ] * 4
    assert (leaf + torch.ones(2)).requires_grad and (leaf * 2).requires_grad and leaf.clone().requires_grad


@pytest.mark.parametrize(
    ("function", "attribute", "value"),
    [
        (lambda x: x.sum((-1,)), "_saved_dim", (18446744073709551615,)),
        (lambda x: x.flip(-1), "_saved_dims", (18446744073709551615,)),
        (lambda x: torch.index_add(x, 0, torch.tensor([0]), x[:1], alpha=-1), "_saved_alpha", -1),
        (lambda x: torch.index_add(x, 0, torch.tensor([0]), x[:1]), "_saved_source_dim", 2),
        (lambda x: x.mean(0), "_saved_self_sym_numel", 4),
        (lambda x: torch.linalg.svd(x)[1], "_saved_S_sym_argsize_minus_1", 2),
        (lambda x: torch.linalg.svd(x)[1], "_saved_full_matrices", True),
    ],
)
def test_numbers_that_nodes_save_are_shown_as_pytorch_shows_them(function: Any, attribute: str, value: Any) -> None:
    node = function(torch.eye(2).requires_grad_()).grad_fn
    assert getattr(node, attribute) == value and attribute in dir(node)


def test_the_layout_that_as_strided_keeps_is_not_shown() -> None:
    node = torch.ones(4, requires_grad=True).as_strided((2,), (1,)).grad_fn
    shown = [name for name in dir(node) if name.startswith("_saved_")]
    assert shown == ["_saved_size", "_saved_storage_offset", "_saved_stride"]


def test_a_determinant_keeps_its_factorisation() -> None:
    node = torch.linalg.det(torch.eye(2, requires_grad=True)).grad_fn
    assert node._saved_LU.shape == (2, 2) and node._saved_pivots.tolist() == [1, 2] and node._saved_result.item() == 1.0


def test_a_solution_keeps_its_factorisation_and_not_the_right_side() -> None:
    with torch.inference_mode():
        side = torch.ones(2)
    node = torch.linalg.solve(torch.eye(2, requires_grad=True), side).grad_fn
    shown = [name for name in dir(node) if name.startswith("_saved_")]
    assert shown == ["_saved_A", "_saved_LU", "_saved_left", "_saved_pivots", "_saved_result"]


def test_hooks_of_saved_tensors_are_functions() -> None:
    with (
        pytest.raises(TypeError, match=r"arg0: collections.abc.Callable.*\n\nInvoked with: 1, 2"),
        torch.autograd.graph.saved_tensors_hooks(1, 2),  # type: ignore[arg-type]
    ):
        pass


def test_a_leaf_detached_in_place_after_saving_is_still_good() -> None:
    x, y = leaf(1.0, 2.0), torch.tensor([3.0, 4.0])
    product = x * y
    y.detach_()
    product.sum().backward()
    assert x.grad.tolist() == [3, 4]


def test_what_was_detached_in_place_after_saving_is_refused() -> None:
    x = leaf(1.0, 2.0)
    middle = x * 2
    product = x * middle
    middle.detach_()
    with pytest.raises(RuntimeError, match="has been detached in-place"):
        product.sum().backward()


def test_hooks_on_a_saved_tensor_change_what_backward_reads() -> None:
    x, y = leaf(1.0, 2.0), torch.tensor([3.0, 4.0])
    product = x * y
    product.grad_fn._raw_saved_other.register_hooks(lambda kept: kept * 10, lambda kept: kept)
    product.sum().backward()
    assert x.grad.tolist() == [30, 40]
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        _ = product.grad_fn._saved_other


def test_warnings_of_remembered_bindings_name_the_script(recwarn: pytest.WarningsRecorder) -> None:
    target = torch.zeros(1).expand(3)
    for _ in range(2):  # the second call takes the remembered way
        target.masked_fill_(torch.tensor([True, False, True]), 2.0)
    assert {warning.filename for warning in recwarn} == {__file__}
