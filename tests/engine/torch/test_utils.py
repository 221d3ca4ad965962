"""What stands in ``torch.utils``: nests of tensors, counted operations, timed statements; and ``torch.__future__``.

The right answers are PyTorch 2.13's.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable
from typing import Any

import pytest

import stridescope.engine.torch as torch
from stridescope.engine.torch.utils import _pytree as pytree
from stridescope.engine.torch.utils import benchmark
from stridescope.engine.torch.utils.flop_counter import FlopCounterMode, register_flop_formula

Point = collections.namedtuple("Point", "x y")  # noqa: PYI024  # the one that pytree knows
NEST: Any = [1, {"a": 2, "b": (3, None)}, collections.OrderedDict(x=1)]


# ---- nests -----------------------------------------------------------------------------------------------------------


def test_a_nest_comes_apart_and_together() -> None:
    leaves, spec = pytree.tree_flatten(NEST)
    assert leaves == [1, 2, 3, None, 1]
    assert repr(spec) == (
        "TreeSpec(list, None, [*,\n  TreeSpec(dict, ['a', 'b'], [*,\n    TreeSpec(tuple, None, [*,\n      *])]),\n"
        "  TreeSpec(OrderedDict, ['x'], [*])])"
    )
    assert (spec.num_leaves, spec.num_nodes, spec.num_children) == (5, 9, 3)
    assert pytree.tree_unflatten([10, 20, 30, 40, 50], spec) == [10, {"a": 20, "b": (30, 40)}, {"x": 50}]


@pytest.mark.parametrize(
    ("tree", "shown"),
    [
        (Point(1, [2]), "TreeSpec(namedtuple, <class '{here}.Point'>, [*,\n  TreeSpec(list, None, [*])])"),
        (collections.defaultdict(list, {"a": 1}), "TreeSpec(defaultdict, [<class 'list'>, ['a']], [*])"),
        (collections.deque([1], 3), "TreeSpec(deque, 3, [*])"),
        (torch.Size([1]), "TreeSpec(Size, None, [*])"),
        (torch.ones(2).max(0), "TreeSpec(max, None, [*,\n  *])"),
        (5, "*"),
    ],
)
def test_the_shape_of_a_nest(tree: Any, shown: str) -> None:
    spec = pytree.tree_structure(tree)
    assert repr(spec) == shown.replace("{here}", __name__)
    assert type(spec.unflatten(pytree.tree_leaves(tree))) in (type(tree), tuple)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ([3], r"^Node arity mismatch; expected 2, but got 1\.$"),
        ((3, 4), r"^Node type mismatch; expected <class 'list'>, but got <class 'tuple'>\.$"),
        (3, r"^Node type mismatch; expected <class 'list'>, but got <class 'int'>\.$"),
    ],
)
def test_nests_that_differ_are_refused(other: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pytree.tree_map(lambda a, b: a, [1, 2], other)


def test_nests_are_mapped() -> None:
    assert pytree.tree_map(lambda a, b: (a, b), [1, 2], [[3], 4]) == [(1, [3]), (2, 4)]
    assert pytree.tree_map_only(int, lambda n: -n, [1, "a", (2.0, 3)]) == [-1, "a", (2.0, -3)]
    named = pytree.tree_map_with_path(lambda path, leaf: f"{pytree.keystr(path)}={leaf}", {"a": [1], "b": Point(2, 3)})
    assert named == {"a": ["['a'][0]=1"], "b": Point("['b'].x=2", "['b'].y=3")}
    assert pytree.tree_any_only(int, lambda n: n > 1, [1, 2, "q"]) and not pytree.tree_all(bool, [1, 0])


def test_a_class_becomes_a_node_once() -> None:
    class Pair:
        def __init__(self, *parts: Any) -> None:
            self.parts = parts

    pytree.register_pytree_node(Pair, lambda pair: (pair.parts, None), lambda parts, _: Pair(*parts))
    assert pytree.tree_map(lambda n: n * 2, Pair(1, [2])).parts == (2, [4])
    with pytest.raises(ValueError, match="is already registered as pytree node"):
        pytree.register_pytree_node(Pair, lambda pair: (pair.parts, None), lambda parts, _: Pair(*parts))


# ---- operations ------------------------------------------------------------------------------------------------------


def counted(work: Callable[[], Any]) -> dict[str, dict[str, int]]:
    counter = FlopCounterMode(display=False)
    with counter:
        work()
    return {name: {str(op): n for op, n in ops.items()} for name, ops in counter.get_flop_counts().items()}


def test_a_model_counts_forward_and_backward_module_by_module() -> None:
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.Flatten(), torch.nn.Linear(72, 4))
    found = counted(lambda: model(torch.randn(2, 1, 8, 8)).sum().backward())
    whole = {"aten.convolution": 2592, "aten.addmm": 1152, "aten.mm": 2304, "aten.convolution_backward": 2592}
    assert found == {
        "Global": whole,
        "Sequential": whole,
        "Sequential.0": {"aten.convolution": 2592, "aten.convolution_backward": 2592},
        "Sequential.2": {"aten.addmm": 1152, "aten.mm": 2304},
    }


def test_products_and_transposed_convolutions_count() -> None:
    def work() -> None:
        torch.randn(4, 5) @ torch.randn(5, 6)
        torch.baddbmm(torch.randn(2, 3, 5), torch.randn(2, 3, 4), torch.randn(2, 4, 5))
        torch.nn.functional.conv_transpose2d(torch.randn(1, 2, 4, 4), torch.randn(2, 3, 3, 3))
        torch.randn(3).sin()

    assert counted(work)["Global"] == {"aten.mm": 240, "aten.baddbmm": 240, "aten.convolution": 1728}


def test_the_counts_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with FlopCounterMode(depth=1) as counter:
        torch.nn.Linear(300, 400)(torch.randn(20, 300))
    assert counter.get_total_flops() == 4_800_000
    assert capsys.readouterr().out == (
        "Module              FLOP  % Total\n-------------  ---------  -------\n"
        "Linear         4800.000K  100.00%\n - aten.addmm  4800.000K  100.00%\n"
    )


def test_a_formula_is_registered_once() -> None:
    register_flop_formula(torch.ops.aten.sinh)(lambda shape, out_shape=None, **rest: shape.numel() * 7)
    assert counted(lambda: torch.ones(3).sinh()) == {"Global": {"aten.sinh": 21}}
    with pytest.raises(RuntimeError, match=r"^duplicate registrations for aten\.sinh$"):
        register_flop_formula(torch.ops.aten.sinh)(lambda *shapes, **rest: 0)


# ---- times -----------------------------------------------------------------------------------------------------------


def test_a_statement_is_timed_by_the_given_clock() -> None:
    ticks = itertools.count()
    timer = benchmark.Timer("x + 1", "x = torch.ones(3)", timer=lambda: next(ticks) * 1.234e-4)
    measured = timer.timeit(1)
    assert measured.number_per_run == 1 and measured.median == pytest.approx(1.234e-4)
    assert repr(measured).split("\n")[1:] == [
        "x + 1", "setup: x = torch.ones(3)", "  123.40 us", "  1 measurement, 1 runs , 1 thread",
    ]  # fmt: skip


def measured(times: list[float], **task: Any) -> benchmark.Measurement:
    return benchmark.Measurement(10, times, benchmark.TaskSpec("a", "pass", label="L", **task))


def test_measurements_are_compared() -> None:
    results = [
        measured([1e-3, 1.1e-3, 1.2e-3, 1.05e-3, 9e-4], sub_label="S", description="D"),
        measured([2e-3, 2.1e-3, 9.2e-3, 2.05e-3, 9e-4], sub_label="Sub2", description="D"),
        measured([2e-2], sub_label="Sub2", description="Other", num_threads=2),
    ]
    compare = benchmark.Compare(results)
    assert str(compare) == (
        "[------------- L -------------]\n"
        "            |    D    |  Other \n"
        "1 threads: --------------------\n"
        "      S     |  105.0  |        \n"
        "      Sub2  |  205.0  |        \n"
        "2 threads: --------------------\n"
        "      Sub2  |         |  2000.0\n\n"
        "Times are in microseconds (us).\n"
    )
    compare.trim_significant_figures()
    assert "      Sub2  |  200  |       \n" in str(compare)
    assert [one.significant_figures for one in results] == [1, 1, 4]


def test_times_that_spread_warn() -> None:
    shown = repr(measured([2e-2, 3e-2]))
    assert shown.endswith(
        "  WARNING: Interquartile range is 20.0% of the median measurement.\n"
        "           This could indicate system fluctuation."
    )


# ---- the future ------------------------------------------------------------------------------------------------------


def test_conversions_can_make_new_parameters() -> None:
    layer = torch.nn.Linear(2, 2)
    before = layer.weight
    layer(torch.ones(2)).sum().backward()
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        layer.double()
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)
    assert layer.weight is not before and layer.weight.dtype is torch.float64 and before.dtype is torch.float32
    assert isinstance(layer.weight, torch.nn.Parameter) and layer.weight.grad.dtype is torch.float64
