"""Switches for special needs: how written views are made again, versions that stay, layouts of gradients, labels."""

from __future__ import annotations

from typing import Any

import pytest

from stridescope.engine import torch

modes: Any = torch.autograd.grad_mode


def written_views() -> list[list[str]]:
    """The nodes above two views of a tensor that is written after they were made."""
    base = torch.ones(2, 3, requires_grad=True) * 1
    views = [base[0].view(3, 1).squeeze(1), base.t()[1]]
    base.mul_(2)
    found = []
    for view in views:
        node, names = view.grad_fn, []
        while node.name() != "MulBackward0":
            names.append(node.name())
            node = node.next_functions[0][0]
        found.append(names)
    return found


def test_views_are_made_again_as_they_were_made_where_asked_for() -> None:
    assert written_views() == [["AsStridedBackward0"]] * 2
    with modes._force_original_view_tracking(True):
        assert torch.autograd.is_view_replay_enabled()
        chains = [["SqueezeBackward1", "ViewBackward0", "SelectBackward0"], ["SelectBackward0", "TBackward0"]]
        assert written_views() == chains
    assert not torch.autograd.is_view_replay_enabled() and written_views() == [["AsStridedBackward0"]] * 2


def test_gradients_through_views_that_are_made_again() -> None:
    gradients = []
    for mode in (False, True):
        x = torch.arange(6.0).reshape(2, 3).requires_grad_()
        with modes._force_original_view_tracking(mode):
            base = x * 1
            view = base.t()[1].view(1, 2)
            base.mul_(3)
            (view**2).sum().backward()
        gradients.append(x.grad.tolist())
    assert gradients[0] == gradients[1] == [[0.0, 18.0, 0.0], [0.0, 72.0, 0.0]]


def test_writes_that_are_not_counted() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    z = y.sin()
    with torch.autograd._unsafe_preserve_version_counter(y):
        y.detach().mul_(2)
        assert y._version == 1
    assert y._version == 0
    z.sum().backward()
    assert x.grad.tolist() == torch.full((2,), 2.0).cos().tolist()
    with pytest.raises(AssertionError, match="Expected tensors to be a tuple"):
        torch.autograd._unsafe_preserve_version_counter([y])


def stride_of_gradient() -> tuple[int, ...]:
    x = torch.ones(2, 3, requires_grad=True)
    (x.t() * torch.ones(3, 2)).backward(torch.ones(3, 2))
    return tuple(x.grad.stride())


def test_a_gradient_may_keep_the_layout_it_came_with() -> None:
    assert stride_of_gradient() == (3, 1)
    with torch.autograd.enforce_grad_layout_policy(False):
        assert stride_of_gradient() == (1, 2)
    assert stride_of_gradient() == (3, 1)


def test_small_questions_are_answered() -> None:
    assert torch.autograd.is_multithreading_enabled()
    with torch.autograd.set_multithreading_enabled(False):
        assert not torch.autograd.is_multithreading_enabled()
    with torch.autograd.profiler.record_function("label"), torch.profiler.record_function("another"):
        pass
    assert torch.autograd.profiler.record_function("label")(lambda a: a + 1)(1) == 2
    with torch.autograd.profiler.profile(enabled=False):
        pass
    with pytest.raises(RuntimeError, match=r"only be used inside a torch.compile region"):
        torch.autograd.graph.region_activation_memory_budget(0.5)
    with pytest.raises(ValueError, match=r"must be in \[0, 1\], got 1.5"):
        torch.autograd.graph.region_activation_memory_budget(1.5)
