"""Every declared op with samples: it runs on any strides, has the right derivative, and shares or writes as it says."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stridescope.engine import torch
from stridescope.engine.dispatch.op import Op
from stridescope.engine.ops import OPS
from stridescope.engine.ops.unary import DOMAINS

SAMPLED = [(op, number) for op in OPS for number in range(len(op.samples))]
RANDOM = [op for op, _ in SAMPLED if any(a.type == "Generator" for a in op.schema.arguments)]


def fits(op: Op, number: int) -> bool:
    """Whether the sample can be written in place: the other operands do not stretch the first."""
    shapes = [v for a, v in zip(op.schema.arguments, op.samples[number], strict=False)
              if a.is_tensor and isinstance(v, tuple)]  # fmt: skip
    return not op.schema.writes or torch.broadcast_shapes(*shapes) == shapes[0] or op.name not in BROADCASTING


BROADCASTING = {op.name for op in OPS if op.schema.writes and sum(a.is_tensor for a in op.schema.arguments) > 1}
SAMPLED = [(op, number) for op, number in SAMPLED if op.name not in BROADCASTING or fits(op, number)]
DETERMINISTIC = [(op, number) for op, number in SAMPLED if op not in RANDOM]


def cases(wanted: Callable[[Op], bool]) -> pytest.MarkDecorator:
    """Run a test on every sample of the ops that are wanted."""
    chosen = [pytest.param(op, n, id=f"{op.qualified}-{n}") for op, n in DETERMINISTIC if wanted(op)]
    return pytest.mark.parametrize(("op", "number"), chosen)


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated names are sampled too
        yield


def values(op: Op, number: int) -> list[Any]:
    """The sample's arguments; where the schema says Tensor, a tuple of ints stands for a tensor of that shape."""
    low, high = DOMAINS.get(op.name.rstrip("_"), (0.2, 0.9))
    found = []
    for argument, value in zip(op.schema.arguments, op.samples[number], strict=False):
        if argument.name in ("condition", "mask") and isinstance(value, tuple):
            found.append(torch.rand(value) > 0.5)
        elif argument.is_tensor and not argument.listed and isinstance(value, tuple):
            found.append(torch.rand(value, dtype=torch.float64) * (high - low) + low)
        elif argument.is_tensor and argument.listed:
            found.append([torch.rand(shape, dtype=torch.float64) for shape in value])
        elif argument.length and value is not None:
            one = (value,) if isinstance(value, int) else tuple(value)
            found.append(one * argument.length if len(one) == 1 else one)
        else:
            found.append(value)
    return found


def spread(value: Any) -> Any:
    """The same numbers at every second place of a larger storage."""
    if not isinstance(value, torch.Tensor) or not value.dim():
        return value
    wide = torch.zeros((*value.shape, 2), dtype=value.dtype)
    wide[..., 0] = value
    return wide[..., 0]


def flat(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def tensors(result: Any) -> list[torch.Tensor]:
    return [item for item in flat(result) if isinstance(item, torch.Tensor)]


def differentiable(op: Op) -> bool:
    return op.derivative is not None and not op.schema.writes and op.derivative.name != "NotImplemented"


# PyTorch has no second derivative for these and says so.
FIRST_ONLY = ("hardsigmoid",)
# Whether these read the storage so, or can at all, depends on the strides.
BY_STRIDES = ("as_strided", "view", "_reshape_alias", "_view_as")


@cases(lambda op: not op.name.startswith(BY_STRIDES))
def test_strides_do_not_change_the_result(op: Op, number: int) -> None:
    arguments = values(op, number)
    apart = [spread(a.clone() if isinstance(a, torch.Tensor) else a) for a in arguments]
    expected = flat(op(*(a.clone() if isinstance(a, torch.Tensor) else a for a in arguments)))
    for mine, theirs in zip(flat(op(*apart)), expected, strict=True):
        if isinstance(mine, torch.Tensor) and not op.name.startswith(("empty", "new_empty")):
            assert mine.shape == theirs.shape
            assert mine.dtype is theirs.dtype
            assert torch.allclose(mine, theirs, equal_nan=True) if mine.dtype.is_floating_point else mine.equal(theirs)
        else:
            assert type(mine) is type(theirs)


@cases(differentiable)
def test_the_derivative_is_that_of_finite_differences(op: Op, number: int) -> None:
    arguments = values(op, number)
    by_name = dict(zip((a.name for a in op.schema.arguments), arguments, strict=False))
    wanted = [name for name in op.derivative.inputs if isinstance(by_name.get(name), torch.Tensor)]  # type: ignore[union-attr]
    inputs = tuple(by_name[name].requires_grad_(True) for name in wanted)

    def results(*changed: torch.Tensor) -> list[torch.Tensor]:
        now = by_name | dict(zip(wanted, changed, strict=True))
        return tensors(op(*(now[a.name] for a in op.schema.arguments if a.name in now)))

    tracked = [number for number, result in enumerate(results(*inputs)) if result.requires_grad]
    assert tracked, "nothing of the result carries a gradient"
    function: Any = lambda *changed: tuple(results(*changed)[k] for k in tracked)  # noqa: E731
    assert torch.autograd.gradcheck(function, inputs)
    if op.name not in FIRST_ONLY:
        assert torch.autograd.gradgradcheck(function, inputs)


def reads_a_tensor(op: Op) -> bool:
    first = op.schema.arguments[:1]
    return bool(first) and first[0].is_tensor and not first[0].listed


# Composites give what their parts give.
@cases(lambda op: not op.composite and reads_a_tensor(op))
def test_views_share_and_kernels_do_not(op: Op, number: int) -> None:
    arguments = values(op, number)
    source = arguments[0]
    shared = [t.untyped_storage().data_ptr() == source.untyped_storage().data_ptr() for t in tensors(op(*arguments))]
    assert all(shared) if op.view is not None or op.schema.writes else not any(shared) or op.name == "_unsafe_view"


@cases(lambda op: bool(op.schema.writes))
def test_writing_counts_a_version_and_returns_the_target(op: Op, number: int) -> None:
    arguments = values(op, number)
    before = arguments[0]._version
    assert op(*arguments) is arguments[0]
    assert arguments[0]._version == before + 1


def test_every_op_says_what_it_does() -> None:
    assert [op.qualified for op in OPS if not op.doc.endswith((".", "…"))] == []
