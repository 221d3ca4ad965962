"""Tracking a call: the node of an op whose inputs require grad.

:func:`track` does it for every op and every kind of argument. Almost all calls are of one kind, though: tensors on
the CPU, one floating result, no hooks. For those each op gets a function of its own (:func:`tracker`), written from
its declaration, which makes the node, its edges and what it saves without asking again what the schema says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stridescope.engine.announce import tensor_id
from stridescope.engine.autograd.edges import gradient_edge
from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.autograd.node import (
    NO_EDGE,
    UNTOLD,
    accumulator,
    meta_of,
    next_sequence_nr,
    node_id,
    on_creation,
    set_history,
)
from stridescope.engine.autograd.plan import FACET_OF
from stridescope.engine.autograd.saved import SavedHooks, kept, kept_result
from stridescope.engine.dispatch.schema import Argument
from stridescope.engine.dispatch.templates import safe
from stridescope.engine.dtype import FLOAT
from stridescope.engine.events import GradFnSet, journal
from stridescope.engine.tensor import Tensor

if TYPE_CHECKING:
    from stridescope.engine.dispatch.op import Op

NUMBER_TYPES = frozenset((int, float, bool, complex))

# Names of the function's own begin with an underscore: no argument of a schema does.
TRACKER = """
def track({names}_out):
    if _hooks or _told or not {first}._plain or _out.dtype.category < _least or _journal.full and (
        not _journal.plain or _out._id
    ){by_number}:
        return _otherwise(_op, ({names}), _out)
    _node = _new(_kind)
    _node._sequence = _next()
    _node._hooks = _node.lengths = None
    _node._id = _untold if _journal.full else 0
{edges}
    _node._edges = ({edge_names})
    _needed = ({needed_names})
    _plan = _node.plan = _plans.get(_needed) or _planned(_needed)
    _node._outputs = [_meta_of(_out)]
    _out._node = _node
    _out._requires_grad = True
    _node.saved = _plan.save(_kept, {names})
    for _keep in _plan.of_results:
        _node.saved[_keep.name] = _facet_of[_keep.facet](_out) if _keep.facet else _kept_result(_out)
"""
EDGE = """
    if {wants}:
        if {name}._base_tensor is None:
            _source = {name}._node
            _e{number} = (_accumulator({name}), 0) if _source is None else (_source, {name}._output_nr)
            _n{number} = True
        else:
            _e{number} = _gradient_edge({name})
            _n{number} = _e{number}[0] is not None
    else:
        _e{number}, _n{number} = _no_edge, False
"""


# Ops whose derivatives PyTorch has for real numbers only; it says so once the result is there.
REAL_ONLY = frozenset(
    {
        "_adaptive_avg_pool2d",
        "_log_softmax",
        "_softmax",
        "_softmax_backward_data",
        "_trilinear",
        "amax",
        "amin",
        "bernoulli",
        "cummax",
        "cummin",
        "embedding",
        "geqrf",
        "index_reduce",
        "kthvalue",
        "median",
        "mode",
        "nan_to_num",
        "nanmedian",
        "normal",
        "scatter_reduce",
        "select_scatter",
        "silu",
        "slice_scatter",
        "soft_margin_loss",
    }
)


def _tracked_if_real(op: Op, usual: Callable[..., None]) -> Callable[..., None]:
    """``usual`` for the results of an op whose derivative is for real numbers only."""

    def tracked(*values: Any) -> None:
        out = values[-1]
        if any(isinstance(one, Tensor) and one.dtype.is_complex for one in (out if isinstance(out, tuple) else (out,))):
            raise RuntimeError(f"{op.name} does not support automatic differentiation for outputs with complex dtype.")
        usual(*values)

    return tracked


def tracker(op: Op) -> Callable[..., None]:
    """``track(*arguments, out)`` of an op: as :func:`track`, with what the declaration says written out."""
    usual = _tracker(op)
    return _tracked_if_real(op, usual) if op.name in REAL_ONLY else usual


def _tracker(op: Op) -> Callable[..., None]:
    derivative = op.derivative
    if derivative is None or derivative.name == "NotImplemented" or not _usual(op):
        return lambda *values: track(op, values[:-1], values[-1])
    inputs = [a for a in op.schema.arguments if a.name in derivative.inputs]
    edges = [
        EDGE.format(name=safe(argument.name), number=number, wants=_wants(argument, op.schema.arguments[0]))
        for number, argument in enumerate(inputs)
    ]
    by_number = " or _grad_mode.formula and {}.__class__ in _numbers" if derivative.with_number is not None else ""
    source = TRACKER.format(
        names="".join(f"{safe(a.name)}, " for a in op.schema.arguments),
        first=safe(op.schema.arguments[0].name),
        edges="".join(edges),
        edge_names="".join(f"_e{number}, " for number in range(len(inputs))),
        needed_names="".join(f"_n{number}, " for number in range(len(inputs))),
        by_number=by_number.format(safe(op.schema.arguments[1].name)) if by_number else "",
    )
    scope: dict[str, Any] = {
        "_op": op, "_kind": derivative.node_type, "_plans": derivative.plans, "_planned": derivative.plan,
        "_otherwise": track, "_hooks": SavedHooks.stack, "_told": on_creation, "_numbers": NUMBER_TYPES,
        "_least": FLOAT, "_journal": journal, "_grad_mode": grad_mode, "_new": object.__new__, "_kept": kept,
        "_next": next_sequence_nr, "_untold": UNTOLD, "_accumulator": accumulator, "_no_edge": NO_EDGE,
        "_gradient_edge": gradient_edge, "_meta_of": meta_of, "Tensor": Tensor,
        "_facet_of": FACET_OF, "_kept_result": kept_result,
    }  # fmt: skip
    exec(compile(source, f"<op {op.qualified}>", "exec"), scope)
    return scope["track"]  # type: ignore[no-any-return]


def _usual(op: Op) -> bool:
    """Whether calls of the op have a tensor in front and one differentiable result, and no lists to differentiate."""
    arguments = op.schema.arguments
    first, inputs = arguments[0], op.derivative.inputs  # type: ignore[union-attr]
    alone = op.schema.returns == ("Tensor",) and op.differentiable_outputs is None
    plain_first = first.is_tensor and not first.listed and not first.optional
    return alone and plain_first and not any(a.listed for a in arguments if a.name in inputs)


def _wants(argument: Argument, first: Argument) -> str:
    name = safe(argument.name)
    return f"{name}._requires_grad" if argument is first else f"isinstance({name}, Tensor) and {name}._requires_grad"


def track(op: Op, args: tuple[Any, ...], out: Any) -> None:
    """Make the node of a call whose inputs require grad, and hand it the results."""
    if _all_inference(op, args):
        return
    if isinstance(out, Tensor):
        if op.differentiable_outputs is None and out.dtype.category >= FLOAT:
            _track_one(op, args, out)
            return
        out = (out,)
    results = tuple(out)
    carriers = _carriers(op, results)
    if any(carrier is not None for carrier in carriers):
        node = make_node(op, args)
        set_history(node, carriers)
        node.save_arguments(args)
        node.save_results(results)


# What PyTorch makes by writing into a new tensor, which is a normal one outside inference mode.
_MADE_BY_COPYING = frozenset(("clone", "_to_copy"))


def _all_inference(op: Op, args: tuple[Any, ...]) -> bool:
    """Whether there are inference tensors only: their calls do not pass the Autograd key in any mode.

    A number in a tensor's place becomes a normal tensor first.
    """
    first = args[0][0] if isinstance(args[0], (list, tuple)) and args[0] else args[0]
    if not (isinstance(first, Tensor) and first._inference) or op.name in _MADE_BY_COPYING:
        return False
    places = [i for i, argument in enumerate(op.schema.arguments) if argument.type == "Tensor" and args[i] is not None]
    values = [v for i in places for v in (args[i] if isinstance(args[i], (list, tuple)) else (args[i],))]
    return all(isinstance(v, Tensor) and v._inference for v in values)


def _track_one(op: Op, args: tuple[Any, ...], out: Tensor) -> None:
    """One result; a recording hears of it and its node at once."""
    node = make_node(op, args)
    node._outputs.append(meta_of(out))
    out._node, out._requires_grad = node, True
    if untold := journal.plain and not out._id and not SavedHooks.stack:
        node._id = UNTOLD  # recorded.ended says it all at once
    node.save_arguments(args)
    node.save_results((out,))
    if not untold and (emit := journal.emit) is not None:
        emit((GradFnSet.code, tensor_id(out), node_id(node), 0))


def _carriers(op: Op, results: Any) -> list[Tensor | None]:
    """The results that get a grad_fn; one that was not computed keeps its number."""
    chosen = op.differentiable_outputs
    if chosen is not None:
        return [results[i] for i in chosen]
    return [r for r in results if r is None or r.dtype.is_floating_point or r.dtype.is_complex]


def make_node(op: Op, args: tuple[Any, ...]) -> Any:
    """The node with its edges; it does not save anything yet."""
    derivative = op.derivative
    if grad_mode.formula and derivative.with_number is not None and args[1].__class__ in NUMBER_TYPES:  # type: ignore[union-attr]
        derivative = derivative.with_number  # type: ignore[union-attr]
    node = derivative.node_type(())  # type: ignore[union-attr]  # older than what asking a view for its edge makes
    edges: list[Any] = []
    needed: list[bool] = []
    lengths: dict[int, int] | None = None
    for index in derivative.indices:  # type: ignore[union-attr]
        value = args[index]
        if isinstance(value, (list, tuple)):
            lengths = lengths or {}
            _list_edges(value, edges, needed, lengths)
        else:
            edges.append(edge := gradient_edge(value))
            needed.append(edge[0] is not None)
    if derivative.name == "NotImplemented":  # type: ignore[union-attr]
        edges = [edge for edge in edges if edge[0] is not None]
    node._edges = tuple(edges)
    node.plan, node.lengths = derivative.plan(tuple(needed)), lengths  # type: ignore[union-attr]
    return node


def _list_edges(tensors: Any, edges: list[Any], needed: list[bool], lengths: dict[int, int]) -> None:
    """The edges of a Tensor[] argument: one per tensor."""
    own = [gradient_edge(item) for item in tensors]
    lengths[len(needed)] = len(own)
    edges.extend(own)
    needed.append(any(edge[0] is not None for edge in own))
