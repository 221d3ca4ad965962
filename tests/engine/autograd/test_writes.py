"""Writes in place: versions, refusals, rebased histories and views."""

from __future__ import annotations

import contextlib
import gc
import weakref
from typing import Any

import pytest

from stridescope.engine import torch


def leaf(*values: float) -> Any:
    return torch.tensor(values, requires_grad=True)


def test_views_and_detach_share_a_version_data_does_not() -> None:
    x = torch.ones(4)
    view, detached, data = x[:2], x.detach(), x.data
    view.add_(1)
    assert [t._version for t in (x, view, detached, data)] == [1, 1, 1, 0]


def test_a_write_after_saving_is_found_in_backward() -> None:
    y = leaf(1.0, 2.0).exp()
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError) as caught:
        z.sum().backward()
    assert "[torch.FloatTensor [2]], which is output 0 of Add, is at version 1; expected version 0" in str(caught.value)


@pytest.mark.parametrize(
    ("write", "text"),
    [
        (lambda x: x.add_(1), "a leaf Variable that requires grad is being used in an in-place"),
        (lambda x: x[:1].add_(1), "a view of a leaf Variable that requires grad is being used in"),
        (lambda x: (x * 1).unbind()[0].add_(1), "Output 0 of Unbind is a view and is being modified inplace."),
    ],
)
def test_forbidden_writes(write: Any, text: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        write(leaf(1.0, 2.0))
    assert str(caught.value).startswith(text)


def test_a_write_to_a_view_rewrites_the_base_and_the_view() -> None:
    x = leaf(1.0, 2.0, 3.0)
    base = x * 1
    view, other = base[:2], base[1:]
    view.mul_(x[:2])
    assert base.grad_fn.name() == "torch::autograd::CopySlices"
    assert view.grad_fn.name() == other.grad_fn.name() == "AsStridedBackward0"
    base.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 1.0]


def test_a_buffer_becomes_tracked_with_its_views() -> None:
    buffer = torch.zeros(3)
    view = buffer[1:]
    buffer[0] = leaf(5.0)[0]
    assert buffer.requires_grad and view.requires_grad and not view.is_leaf
    buffer.detach_()
    assert not view[0].detach().requires_grad


def test_views_made_in_no_grad_are_refused_later() -> None:
    base = leaf(1.0, 2.0) * 1
    with torch.no_grad():
        view = base[:1]
    assert view.requires_grad and view.grad_fn is None
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being modified inplace"):
        view.add_(1)


def test_retain_grad_follows_the_tensor_hooks_stay() -> None:
    y = leaf(1.0, 2.0) * 1
    seen: list[str] = []
    y.register_hook(lambda grad: seen.append("old"))
    y.retain_grad()
    y.mul_(3)
    y.register_hook(lambda grad: seen.append("new"))
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0] and seen == ["new", "old"]


def test_detach_in_place_refuses_views() -> None:
    x = leaf(1.0, 2.0) * 2
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        x[:1].detach_()
    assert not x.detach_().requires_grad and x.is_leaf


def test_as_strided_shares_and_sums() -> None:
    x = leaf(1.0, 2.0, 3.0)
    x.as_strided((2, 2), (1, 1)).sum().backward()
    assert x.grad.tolist() == [1.0, 2.0, 1.0]


def test_saved_tensors_may_be_written_where_it_is_allowed() -> None:
    x = leaf(1.0, 2.0)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        y = x.clone()
        z = (y * y).sum()
        y.mul_(0)
        z.backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_inference_tensors() -> None:
    with torch.inference_mode():
        x = torch.ones(2)
        assert x.is_inference() and not torch.is_grad_enabled()
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        _ = x._version
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        _ = leaf(1.0, 2.0) * x
    assert (leaf(1.0, 2.0) + x).requires_grad


def test_a_view_whose_base_requires_grad_always_does() -> None:
    base = leaf(1.0)
    with torch.no_grad():
        view = base.view(1)
    view.requires_grad_(True)
    view.requires_grad_(False)
    assert view.requires_grad
    base.requires_grad_(False)
    assert not view.requires_grad


def test_a_leaf_that_is_a_view_is_refused_when_its_base_was_written() -> None:
    base = leaf(1.0, 2.0).sin()
    with torch.inference_mode():
        view = base.view_as(base)
    view.requires_grad_()
    made = view + 1
    view.detach().add_(1)
    with pytest.raises(RuntimeError, match="A view was created in inference mode and its base"):
        made.sum().backward()


def test_a_node_is_asked_for_before_the_kernel() -> None:
    base = leaf(1.0, 2.0, 3.0, 4.0).view(2, 2) * 1
    with torch.no_grad():
        part = base.t()
    base.add_(1)
    for call in (lambda: part.view(-1), lambda: part.add(torch.ones(3))):
        with pytest.raises(RuntimeError, match="A view was created in no_grad mode and its base"):
            call()


def test_the_gradient_of_an_overlapping_view_has_the_versions_of_its_writes() -> None:
    wide = leaf(1.0, 2.0, 3.0).expand(2, 3).split(1)[0].expand(2, 3)
    seen = wide.as_strided((2, 2), (0, 1))
    (gradient,) = torch.autograd.grad(seen.sum(), wide)
    assert gradient.tolist() == [[1.0, 1.0, 0.0]] * 2
    assert gradient._version == 2


def test_choosing_an_overload_keeps_no_tensor_alive() -> None:
    kept = torch.ones(3)
    seen = weakref.ref(kept)
    gc.disable()
    try:
        kept.masked_fill(kept > 0, 1 - 1)
        with contextlib.suppress(TypeError):
            kept.masked_fill(kept > 0, "0")
        del kept
        assert seen() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("write", [
    lambda t, x: t.add_(x), lambda t, x: t.bitwise_and_(x), lambda t, x: t.index_put_((x,), x), lambda t, x: t.eq_(x),
])  # fmt: skip
def test_that_a_view_may_not_be_written_is_said_before_the_op_looks_at_its_arguments(write: Any) -> None:
    with torch.no_grad():
        view = torch.zeros(1, 2, dtype=torch.int32).unbind(0)[0]
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        write(view, leaf(1.0, 2.0, 3.0))


@pytest.mark.parametrize(
    ("dtype", "word"),
    [
        (torch.float32, "torch.FloatTensor"),
        (torch.bfloat16, "CPUBFloat16Type"),
        (torch.complex64, "CPUComplexFloatType"),
    ],
)
def test_what_was_changed_is_named_by_its_type(dtype: Any, word: str) -> None:
    x = torch.ones(2, dtype=dtype, requires_grad=True) * 1
    y = (x * x).abs().sum()
    x.add_(1)
    with pytest.raises(RuntimeError, match=rf"\[{word} \[2\]\]"):
        y.backward()


def test_a_detached_tensor_still_says_that_it_retains_its_gradient() -> None:
    y = leaf(1.0, 2.0).exp()
    y.sum().backward(inputs=[y], retain_graph=True)
    y.detach_()
    assert (y.is_leaf, y.retains_grad) == (True, True)
    y[:].add_(leaf(3.0, 4.0))
    assert (y.is_leaf, y.retains_grad, y.grad.tolist()) == (False, True, [1.0, 1.0])


def test_a_write_into_a_view_of_a_tensor_with_gaps_passes_gradients_through() -> None:
    base = torch.arange(6.0).reshape(2, 3)[:, :1].detach()
    w = leaf(1.0)
    base[0].mul_(w)
    (grad,) = torch.autograd.grad(base.sum(), w)
    assert grad.tolist() == [0.0]


def test_a_comparison_in_place_gives_real_operands_no_slope() -> None:
    target, other = torch.ones(2, dtype=torch.complex64, requires_grad=True), torch.tensor(1.0, requires_grad=True)
    written = target.clone().eq_(other)
    slopes = torch.autograd.grad(written, (target, other), torch.ones_like(written))
    assert [(s.dtype, s.tolist()) for s in slopes] == [(torch.complex64, [0j, 0j]), (torch.float32, 0.0)]
