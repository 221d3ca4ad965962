"""How a call of an op is shown to what takes its place (``__torch_dispatch__``): as PyTorch's dispatcher has it.

The engine's own calls differ where that saves work: a number stands where C++ has another overload, a factory has no
options, a view of a view has strides. What is shown has an overload, arguments and ``run``, which does the engine's own
call; it is done when ``func`` is called with the arguments that it was shown with.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, NamedTuple, cast

from stridescope.engine.autograd.plan import is_placed
from stridescope.engine.device import device
from stridescope.engine.dispatch.op import Op
from stridescope.engine.layout import strided
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._ops import DeclaredOverload, OpOverload, Waiting, aten, overload_of

Run = Callable[[], Any]


class Call(NamedTuple):
    """One call as it is shown, and what it does."""

    overload: OpOverload
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    run: Run

    def waiting(self) -> Waiting:
        """What ``func`` does when it is called with these arguments."""
        return Waiting(self.overload, self.args, self.kwargs, self.run)


# Ops that are made of others, and shown as one.
WHOLE = frozenset(("allclose", "equal"))
_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
_FACTORIES = frozenset(("zeros", "ones", "empty", "full", "rand", "randn", "randint", "randperm", "arange", "linspace",
                        "logspace", "eye", "normal", "empty_strided"))  # fmt: skip
_LIKE = frozenset(("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like",
                   "new_zeros", "new_ones", "new_empty", "new_full", "new_empty_strided"))  # fmt: skip
# In-place ops of formulas that PyTorch does out of place where something may take an op's place.
_OUT_OF_PLACE = frozenset(("scatter_add_", "index_add_", "scatter_"))
# Files that stand between who calls an op and the op.
_BETWEEN = ("stridescope.engine.dispatch.", "stridescope.engine.ops.operators", "stridescope.engine.ops.attach",
            "stridescope.engine.torch._shown_calls", "stridescope.engine.torch._dispatch_stack")  # fmt: skip
_IN_CPP = ("stridescope.engine.ops.", "stridescope.engine.autograd.")


def _callers() -> Iterator[str]:
    """The modules of the functions that led to the op, but for those that stand between."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__") or ""
        if not frame.f_code.co_filename.startswith("<op ") and not name.startswith(_BETWEEN):
            yield name
        frame = frame.f_back


def is_called_in_cpp() -> bool:
    """Whether what calls the op is C++ in PyTorch: another op or a derivative formula."""
    return next(_callers()).startswith(_IN_CPP)


def is_called_by_formula() -> bool:
    """Whether what calls the op is a derivative formula, or autograd itself."""
    for name in _callers():
        if not name.startswith("stridescope.engine.ops."):
            return name.startswith("stridescope.engine.autograd.")
    return False


def shown(op: Op, values: Sequence[Any], run: Run) -> Call:
    """A call of a declared op."""
    rule = _RULES.get(op.name)
    if rule is not None and (found := rule(op, values, run)) is not None:
        return found
    if op.schema.overload == "Tensor" and len(values) > 1 and isinstance(values[1], (int, float, complex)):
        return _by_number(op, values, run)
    overload = overload_of(op)
    args, kwargs = overload.split(values)
    if op.name in _FACTORIES or op.name in _LIKE:
        kwargs = _options(op, kwargs, values)
    elif op.name in _OUT_OF_PLACE and is_called_in_cpp():
        overload = getattr(aten, op.name[:-1])._overloads[overload._overloadname]
    return Call(overload, args, kwargs, run)


def named(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], run: Run) -> Call:
    """A call of the op of this name with overload, such as ``add.Tensor``."""
    packet, _, overload = name.partition(".")
    return Call(getattr(aten, packet)._overloads[overload or "default"], args, kwargs, run)


def _by_number(op: Op, values: Sequence[Any], run: Run) -> Call:
    """A tensor and a number: comparisons and whatever C++ calls have an overload for that."""
    overload = overload_of(op)
    if op.name in _COMPARISONS or (is_called_in_cpp() and not is_placed(values[1])):
        overload = cast(DeclaredOverload, overload.overloadpacket._overloads.get("Scalar", overload))
    args, kwargs = overload_of(op).split(values)
    return Call(overload, args, kwargs, run)


def _options(op: Op, kwargs: dict[str, Any], values: Sequence[Any]) -> dict[str, Any]:
    """The options of a factory: Python's functions say the device and what memory, C++ all but the memory."""
    given = {name: value for name, value in kwargs.items() if name != "requires_grad"}
    source = values[0] if op.name in _LIKE else None
    if is_called_in_cpp():
        kind = given.get("dtype")
        own: dict[str, Any] = {} if kind is None else {"dtype": kind, "layout": strided}
        if source is None:
            own["device"] = device("cpu")
    else:
        own = {"pin_memory": False} if source is not None else {"device": device("cpu"), "pin_memory": False}
    order = ("generator", "dtype", "layout", "device", "pin_memory", "memory_format")
    merged = own | given
    return {name: merged[name] for name in order if name in merged}


def _fresh(_op: Op, _values: Sequence[Any], run: Run) -> Call:
    """``torch.tensor(…)``: what is seen is only that the tensor is handed in."""
    made = run()
    return named("lift_fresh", (made,), {}, lambda: made)


def _fresh_number(op: Op, values: Sequence[Any], run: Run) -> Call | None:
    """The number of ``x[index] = 2``, which becomes a tensor."""
    return _fresh(op, values, run) if not values[1] and is_called_in_cpp() else None


def _viewed(_op: Op, values: Sequence[Any], run: Run) -> Call:
    return named("view", (values[0], list(values[1])), {}, run)


def _copied(op: Op, values: Sequence[Any], run: Run) -> Call:
    """``_to_copy``: calls name what changes, formulas everything."""
    source, kind, on, non_blocking, memory = values[:5]
    kwargs: dict[str, Any] = {}
    whole = is_called_by_formula()
    if kind is not source.dtype or whole:
        kwargs["dtype"] = kind
    if whole:
        kwargs["layout"] = strided
    if on != source.device or whole:
        kwargs["device"] = on
    if non_blocking:
        kwargs["non_blocking"] = True
    if memory is not None:
        kwargs["memory_format"] = memory
    return Call(overload_of(op), (source,), kwargs, run)


def _as_real(_op: Op, values: Sequence[Any], run: Run) -> Call:
    return named("view_as_real", (values[0],), {}, run)


def _chosen(op: Op, values: Sequence[Any], run: Run) -> Call | None:
    """``where`` with a number: it becomes a tensor first."""
    if op.qualified != "where.self" or all(isinstance(value, Tensor) for value in values):
        return None
    like = next(value for value in values[1:] if isinstance(value, Tensor))
    made = [v if isinstance(v, Tensor) else op_call("scalar_tensor")(v, like.dtype, strided, like.device)
            for v in values]  # fmt: skip
    return Call(overload_of(op), tuple(made), {}, run)


def _put(_op: Op, values: Sequence[Any], run: Run) -> Call | None:
    """What indexing's formula does."""
    if not is_called_in_cpp() or len(values) < 5 or not values[3]:
        return None
    return named("index_put", (values[0], list(values[1]), values[2], True), {}, run)


_RULES: dict[str, Callable[[Op, Sequence[Any], Run], Call | None]] = {
    "tensor": _fresh,
    "new_full": _fresh_number,
    "_reshape_alias": _viewed,
    "_to_copy": _copied,
    "_view_as_real": _as_real,
    "where": _chosen,
    "_index_put_impl_": _put,
}
