"""The backward engine: order, hooks, accumulation, partial passes, errors inside."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stridescope.engine import torch
from stridescope.engine.events import (
    BackwardBegan,
    BackwardEnded,
    Event,
    GradAccumulated,
    GradientSent,
    NodeBegan,
    NodeReady,
    journal,
)


def leaf(*values: float) -> Any:
    return torch.tensor(values, requires_grad=True)


def test_hooks_run_in_pytorchs_order() -> None:
    log: list[str] = []
    x = leaf(1.0)
    y = x * 3
    y.register_hook(lambda g: log.append("tensor"))
    y.grad_fn.register_prehook(lambda gs: log.append("node before"))
    y.grad_fn.register_hook(lambda ins, outs: log.append("node after"))
    x.register_hook(lambda g: log.append("leaf"))
    x.register_post_accumulate_grad_hook(lambda t: log.append("accumulated"))
    y.backward()
    assert log == ["tensor", "node before", "node after", "leaf", "accumulated"]


def test_a_hook_may_replace_the_gradient_and_be_removed() -> None:
    x = leaf(1.0)
    handle = x.register_hook(lambda g: g * 10)
    (x * 2).backward()
    handle.remove()
    (x * 2).backward()
    assert x.grad.tolist() == [22.0]


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        (5, "expected Variable, but hook returned 'int'"),
        (torch.ones(3), "hook 'hook' has changed the size of value"),
        (torch.ones(1).double(), "has changed the type of value (was torch.FloatTensor got torch.DoubleTensor)"),
    ],
)
def test_what_a_hook_may_not_return(returned: Any, text: str) -> None:
    y = leaf(1.0) * 2

    def hook(grad: Any) -> Any:
        return returned

    y.register_hook(hook)
    with pytest.raises((TypeError, RuntimeError)) as caught:
        y.backward()
    assert text in str(caught.value)


def test_grad_returns_without_touching_leaves() -> None:
    x, y = leaf(2.0), leaf(3.0)
    z = x * y
    gx, none = torch.autograd.grad(z, [x, leaf(1.0)], allow_unused=True)
    assert gx.tolist() == [3.0] and none is None and x.grad is None and y.grad is None


def test_unused_inputs_are_named_or_made_zero() -> None:
    x, other = leaf(2.0), leaf(1.0)
    with pytest.raises(RuntimeError, match="The differentiated Tensor at index 0 appears to not have been used"):
        torch.autograd.grad(x * 2, other)
    assert torch.autograd.grad(x * 2, other, materialize_grads=True)[0].tolist() == [0.0]


def test_backward_into_chosen_inputs() -> None:
    x, y = leaf(2.0), leaf(3.0)
    (x * y).backward(inputs=[x])
    assert x.grad.tolist() == [3.0] and y.grad is None


def test_batched_vectors() -> None:
    x = leaf(1.0, 2.0)
    (rows,) = torch.autograd.grad(x * x, x, torch.tensor([[1.0, 0.0], [0.0, 1.0]]), is_grads_batched=True)
    assert rows.tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_third_derivative() -> None:
    x = leaf(2.0)
    y = x**4
    for expected in (32.0, 48.0, 48.0):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
        assert y.tolist() == [expected]


def test_the_first_gradient_is_copied_unless_nobody_else_has_it() -> None:
    x, given = leaf(1.0, 2.0), torch.tensor([3.0, 4.0])
    x.backward(given)
    x.grad.zero_()
    assert given.tolist() == [3.0, 4.0]
    first = x.grad
    (x * 2).sum().backward()
    assert x.grad is first and first.tolist() == [2.0, 2.0]


def test_grad_takes_the_leafs_layout() -> None:
    x = torch.ones(2, 3).t().clone().requires_grad_()
    assert x.stride() == (1, 3)
    (x * torch.ones(3, 2)).sum().backward()
    assert x.grad.stride() == (1, 3)


def test_a_backward_inside_backward() -> None:
    seen: list[float] = []
    x = leaf(2.0)

    def hook(grad: Any) -> None:
        with torch.enable_grad():
            inner = leaf(5.0)
            (inner * inner).backward()
            seen.append(inner.grad.item())

    y = x * 3
    y.register_hook(hook)
    (y * 2).backward()
    assert seen == [10.0] and x.grad.tolist() == [6.0]


def test_an_error_inside_leaves_the_engine_usable() -> None:
    x = leaf(1.0)
    y = x * 2

    def hook(grad: Any) -> None:
        raise ValueError("mine")

    handle = y.register_hook(hook)
    with pytest.raises(ValueError, match="mine"):
        (y * 2).backward(retain_graph=True)
    handle.remove()
    assert torch.is_grad_enabled() and x.grad is None
    (y * 2).backward()
    assert x.grad.tolist() == [4.0]


def test_multi_grad_hooks() -> None:
    x, y = leaf(1.0), leaf(2.0)
    all_seen: list[Any] = []
    any_seen: list[Any] = []
    torch.autograd.graph.register_multi_grad_hook((x, y), all_seen.append)
    torch.autograd.graph.register_multi_grad_hook((x, y), any_seen.append, mode="any")
    (x * y).backward()
    assert [g.item() for g in all_seen[0]] == [2.0, 1.0] and len(all_seen) == len(any_seen) == 1


def test_leaves_are_served_in_the_order_of_pytorchs_heap() -> None:
    # Recorded from PyTorch 2.13: equal leaves leave a binary heap in this order.
    order: list[int] = []
    leaves = [leaf(float(i)) for i in range(5)]
    for number, each in enumerate(leaves):
        each.register_hook(lambda g, number=number: order.append(number))
    torch.stack(leaves).sum().backward()
    assert order == [0, 2, 4, 1, 3]


def test_anomaly_mode_names_the_forward_call() -> None:
    x = leaf(-1.0)
    with torch.autograd.set_detect_anomaly(True):
        y = x.sqrt() * 0
        with (
            pytest.warns(UserWarning, match="Error detected in SqrtBackward0. Traceback of forward call"),
            pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output."),
        ):
            y.backward()


def test_every_decision_of_a_pass_is_an_event() -> None:
    wires: list[Any] = []
    x = leaf(2.0)
    y = x * x
    journal.start(wires.append)
    try:
        (y * 3).backward()
    finally:
        journal.stop()
    events = [Event.unpack(wire) for wire in wires]
    kinds = [type(event) for event in events if type(event).family == "backward"]
    assert kinds[0] is BackwardBegan and kinds[-1] is BackwardEnded
    sent = [(event.summed, event.waiting) for event in events if isinstance(event, GradientSent)]
    assert sent == [(False, 0), (False, 1), (True, 0)]
    ready = [event.node for event in events if isinstance(event, NodeReady)]
    began = [event.node for event in events if isinstance(event, NodeBegan)]
    assert ready == began and len(ready) == 3
    (accumulated,) = [event for event in events if isinstance(event, GradAccumulated)]
    assert accumulated.first


class Nested(torch.autograd.Function):
    """Its backward runs a backward pass of its own, which runs another, and so on."""

    @staticmethod
    def forward(ctx: Any, x: Any, left: int) -> Any:
        ctx.left = left
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        if ctx.left == 0:
            return gradients[0], None
        if ctx.left < 0:
            raise ValueError(f"at the bottom, grad mode {torch.is_grad_enabled()}")
        inner = torch.ones(1, requires_grad=True)
        with torch.enable_grad():
            Nested.apply(inner, ctx.left - 1 if ctx.left != 2 or gradients[0] > 0 else -1).backward(gradients[0])
        return inner.grad + 1, None


def test_backward_passes_nest_a_thousand_deep() -> None:
    x = torch.ones(1, requires_grad=True)
    Nested.apply(x, 1000).backward()
    assert x.grad.item() == 1001.0


def test_what_fails_deep_inside_reaches_the_caller() -> None:
    x = torch.ones(1, requires_grad=True)
    threads = threading.active_count()
    with pytest.raises(ValueError, match="at the bottom, grad mode False"):
        Nested.apply(x, 200).backward(-torch.ones(1))
    assert threading.active_count() == threads
    Nested.apply(x, 1).backward()
    assert x.grad.item() == 2.0


def test_checkpoints_nest_beyond_one_threads_stack() -> None:
    def nested(depth: int) -> Any:
        inner = nested(depth - 1) if depth else None
        return lambda x: x * 2 if inner is None else torch.utils.checkpoint.checkpoint(inner, x, use_reentrant=True)

    x = torch.ones(1, requires_grad=True)
    nested(60)(x).backward()
    assert x.grad.item() == 2.0


def test_a_view_whose_base_was_detached_gives_no_gradient() -> None:
    base = torch.ones(2, requires_grad=True)
    view = base[0]
    base.detach_()
    base.detach().mul_(2)
    found: list[Any] = []
    view.grad_fn.register_hook(lambda given, _: found.append(given))
    view.backward()
    assert view.grad_fn.name() == "AsStridedBackward0" and found == [(None,)]
