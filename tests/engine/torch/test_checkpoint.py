"""torch.utils.checkpoint: selective checkpoints, runs that differ, debugging; the expected texts are PyTorch's."""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from stridescope.engine import torch

C: Any = torch.utils.checkpoint
aten: Any = torch.ops.aten
Mode: Any = torch.utils._python_dispatch.TorchDispatchMode
run: Any = functools.partial(C.checkpoint, use_reentrant=False)


def leaf() -> Any:
    return torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)


def selective(policy: Any, **options: Any) -> Any:
    return functools.partial(C.create_selective_checkpoint_contexts, policy, **options)


def product(x: Any) -> Any:
    return (x @ x).sigmoid() * x


def plain_gradient() -> Any:
    x = leaf()
    product(x).sum().backward()
    return x.grad


class Alternating:
    """Does one thing the first time, and another the second."""

    def __init__(self, first: Callable[[Any], Any], second: Callable[[Any], Any]) -> None:
        self.turns = [first, second]

    def __call__(self, x: Any) -> Any:
        return self.turns.pop(0)(x)


def test_a_policy_sees_every_op_once_and_chooses_what_is_kept() -> None:
    seen: list[tuple[str, bool, list[int]]] = []

    def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append((str(op), ctx.is_recompute, list(ctx.op_output.shape)))
        return C.CheckpointPolicy.MUST_SAVE if op == aten.mm.default else C.CheckpointPolicy.PREFER_RECOMPUTE

    x = leaf()
    out = run(product, x, context_fn=selective(policy))
    expected = [("aten.mm.default", False, [2, 2]), ("aten.sigmoid.default", False, [2, 2])]
    assert seen == [*expected, ("aten.mul.Tensor", False, [2, 2])]
    out.sum().backward()
    assert len(seen) == 3 and torch.equal(x.grad, plain_gradient())


@pytest.mark.parametrize("saved", [[aten.mm.default], [aten.sigmoid.default, aten.mul.Tensor], []])
def test_saved_ops_give_the_same_gradients(saved: list[Any]) -> None:
    x = leaf()
    run(product, x, context_fn=selective(saved)).sum().backward()
    assert torch.equal(x.grad, plain_gradient())


class Counting(Mode):
    """Counts the ops below autograd."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.counts[str(func)] += 1
        return func(*args, **kwargs)


@pytest.mark.parametrize(("saved", "times"), [([aten.mm.default], 0), ([], 1)])
def test_what_is_saved_is_not_computed_again(saved: list[Any], times: int) -> None:
    out = run(lambda x: (x @ x).sigmoid().exp(), leaf(), context_fn=selective(saved))
    with Counting() as second:
        assert out.grad_fn._saved_result.shape == (2, 2)  # unpacking it runs the function again
    assert second.counts["aten.mm.default"] == times and second.counts["aten.sigmoid.default"] == 1


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: C.create_selective_checkpoint_contexts([aten.mm]), ValueError, "change it to `torch.ops.aten.mm.default`"),
    (lambda: C.create_selective_checkpoint_contexts([3]), ValueError, "OpOverload but got: 3 of type <class 'int'>. "),
    (lambda: C.create_selective_checkpoint_contexts(3), TypeError, "must be either a function or a list of ops."),
    (lambda: run(product, leaf(), determinism_check="all"), ValueError, "one of ['default', 'none'], but got all"),
    (lambda: run(product, leaf(), debug=True, context_fn=selective([])), ValueError, "non-default context_fn"),
    (
        lambda: C.checkpoint(product, leaf(), use_reentrant=True, debug=True),
        ValueError,
        "Passing `context_fn` or `debug` is only supported when use_reentrant=False.",
    ),
    (
        lambda: run(lambda x: 1 / 0, leaf(), context_fn=lambda: (contextlib.suppress(Exception), None)),
        RuntimeError,
        "the forward context provided by context_fn suppressed an exception",
    ),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_is_refused(number: int) -> None:
    call, kind, text = REFUSED[number]
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)


def test_kept_values_serve_one_pass_and_must_not_change() -> None:
    out = run(product, leaf(), context_fn=selective([aten.mm.default])).sum()
    out.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="any region computed under selective activation checkpoint"):
        out.backward()
    written = lambda x: x.sin().mul_(2).cos()  # noqa: E731
    with pytest.raises(RuntimeError, match="Tensor cached during selective activation checkpoint has been mutated"):
        run(written, leaf(), context_fn=selective([aten.sin.default])).sum().backward()
    allowed = selective([aten.sin.default], allow_cache_entry_mutation=True)
    run(written, leaf(), context_fn=allowed).sum().backward()
    other = Alternating(lambda x: x.sin().exp(), lambda x: x.cos().exp())
    with pytest.raises(RuntimeError, match="aten.cos.default encountered during backward but not found in storage"):
        run(other, leaf(), context_fn=selective([aten.exp.default])).sum().backward()


def test_runs_that_save_otherwise_are_told_apart() -> None:
    smaller = lambda: Alternating(lambda x: x[:1].exp().sum(), lambda x: x.exp().sum())  # noqa: E731
    with pytest.raises(C.CheckpointError, match=r"position 0:\nsaved metadata: \{'shape': torch.Size\(\[1, 2\]\)"):
        run(smaller(), leaf()).backward()
    larger = Alternating(lambda x: x.exp(), lambda x: torch.cat([x, x]).exp())
    with pytest.raises(RuntimeError, match=r"size of tensor a \(2\) must match the size of tensor b \(4\)"):
        run(larger, leaf(), determinism_check="none").sum().backward()
    more = lambda: Alternating(lambda x: x.exp(), lambda x: x.exp().exp())  # noqa: E731
    run(more(), leaf()).sum().backward()  # stops before it could see the difference
    with pytest.raises(C.CheckpointError, match="trying to save more tensors during recomputation"):
        run(more(), leaf(), early_stop=False).sum().backward()
    with C.set_checkpoint_early_stop(True):
        out = run(more(), leaf(), early_stop=False)
    out.sum().backward()
    fewer = Alternating(lambda x: x.exp().exp(), lambda x: x.exp())
    with pytest.raises(C.CheckpointError, match="during forward: 2\nNumber of tensors saved during recomputation: 1."):
        run(fewer, leaf()).sum().backward()


def test_debugging_tells_of_the_ops_of_both_runs() -> None:
    def differing() -> Any:
        return Alternating(lambda x: (x @ x).sin().max(0).values.exp(), lambda x: (x @ x).max(0).values)

    with pytest.raises(C.CheckpointError) as caught:
        run(differing(), leaf(), debug=True).sum().backward()
    text = str(caught.value)
    assert "saved during the original forward and recomputation" in str(caught.value.__cause__)
    original, again = text.split("Operations executed during")[1:]
    assert original.split("\n")[2:6] == [
        "$1: f32[2, 2] = torch._ops.aten.mm.default($0, $0)",
        "$2: f32[2, 2] = torch._ops.aten.sin.default($1)",
        "('$3: f32[2]', '$4: i64[2]') = torch._ops.aten.max.dim($2, 0)",
        "$5: f32[2] = torch._ops.aten.exp.default($3)",
    ]
    assert "aten.sin" not in again and "aten.max.dim(" in again
    assert f"(2 of 4 in original)\n\n{__file__}:" in text
    with C.set_checkpoint_debug_enabled(False), pytest.raises(C.CheckpointError, match="Tip: To see a more detailed"):
        run(differing(), leaf(), debug=True).sum().backward()


def test_a_group_of_passes_runs_the_function_again_once() -> None:
    calls: list[int] = []

    def function(x: Any) -> Any:
        calls.append(1)
        return x.sin(), x.exp()

    x = leaf()
    first, second = run(function, x)
    with C.GraphExecGroup():
        first.sum().backward()
        second.sum().backward()
        with pytest.raises(RuntimeError, match="GraphExecGroup contexts cannot be nested"), C.GraphExecGroup():
            pass
        assert len(calls) == 2
        with pytest.raises(C.CheckpointError, match="Performing two backward calls that overlap"):
            out = run(function, x)[0].sum()
            out.backward(retain_graph=True)
            out.backward()
    assert torch.allclose(x.grad, x.detach().cos() * 2 + x.detach().exp())


def test_a_mode_sees_the_ops_below_autograd_and_may_give_other_results() -> None:
    class Doubling(Mode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append((str(func), len(args), kwargs, torch.is_grad_enabled()))
            return func(*args, **kwargs) * (2 if func is aten.exp.default else 1)

    seen: list[Any] = []
    x = leaf()
    with Doubling():
        y = torch.exp(torch.nn.functional.linear(x, x))
    names = ["aten.t.default", "aten.mm.default", "aten.exp.default", "aten.detach.default"]
    assert [name for name, *_ in seen] == names
    assert seen[2] == ("aten.exp.default", 1, {}, False)
    assert y.grad_fn.name() == "ExpBackward0" and torch.equal(y, 2 * (x @ x.t()).exp())
    assert torch.equal(aten.add.Tensor(x, 1), x + 1) and aten.mm(x, x).shape == (2, 2)
    assert repr(aten.mm.default) == "<OpOverload(op='aten.mm', overload='default')>"
    with pytest.raises(RuntimeError, match=r"aten::mm\(\) is missing value for argument 'mat2'"):
        aten.mm.default(x)
    with pytest.raises(AttributeError, match="'_OpNamespace' 'aten' object has no attribute 'nonsense'"):
        aten.nonsense  # noqa: B018
