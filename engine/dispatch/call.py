"""The path of an op call.

``build(op)`` writes the op's callable from its schema, so that binding costs what a plain Python call costs. The
short path runs the kernel and, when an input requires grad, makes the node. While something records, or a mode is
active, the full path announces every stage: bind → keys → promote → view or kernel → history → record.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from stridescope.engine.announce import next_tensor_id, tensor_id
from stridescope.engine.autograd.edges import UNTRACKED, gradient_edge, info_of
from stridescope.engine.autograd.history import (
    bind_to_view,
    check_inference,
    check_inplace,
    mark_inference,
    mark_view,
    original_for_saving,
    rebase_history,
)
from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.autograd.node import set_history
from stridescope.engine.dispatch.recorded import SIMPLE, are_simple, ended, full, refused
from stridescope.engine.dispatch.result_strides import output_strides, settled
from stridescope.engine.dispatch.run import NUMBERS, Pointwise
from stridescope.engine.dispatch.schema import REQUIRED, Argument, Schema
from stridescope.engine.dispatch.templates import (
    ANNOUNCED,
    ANNOUNCED_COMPOSITE,
    BINARY_RESULT,
    COMPOSITE,
    COMPOSITE_CALL,
    CORE,
    FITS,
    FITS_OTHER,
    FITS_SAME,
    INPLACE,
    KERNEL,
    MADE,
    QUICK_VIEW,
    TEMPLATE,
    UNARY_RESULT,
    VIEW,
    around,
    pattern,
    quick,
    safe,
    usual,
    written,
)
from stridescope.engine.dispatch.tracking import make_node, track, tracker
from stridescope.engine.dtype import FLOAT, dtype
from stridescope.engine.events import journal
from stridescope.engine.events.bundles import BEGUN, CALLED, OPENED
from stridescope.engine.layout import Layout
from stridescope.engine.storage import Array, next_address, next_storage_id
from stridescope.engine.tensor import Tensor, alias, bump_version, canonical
from stridescope.engine.warn import is_ours

if TYPE_CHECKING:
    from stridescope.engine.dispatch.op import Op

STAGES = {"begun": BEGUN, "opened": OPENED, "told": CALLED, "ended": ended, "simple": SIMPLE, "are_simple": are_simple,
          "tensor_id": tensor_id, "next_tensor_id": next_tensor_id, "next_storage_id": next_storage_id,
          "next_address": next_address}  # fmt: skip


def build(op: Op) -> Callable[..., Any]:
    """The callable of an op, with the schema's own signature."""
    if op.composite is not None:
        return _composite(op)
    template = (QUICK_VIEW if op.quick else VIEW) if op.view else INPLACE if op.schema.writes else KERNEL
    result = ""
    first_is_tensor = op.schema.arguments[0].is_tensor if op.schema.arguments else False
    if template is KERNEL and isinstance(op.run, Pointwise) and op.run.ufunc is not None and first_is_tensor:
        single = op.run.operands(len(op.schema.arguments)) == 1
        result = BINARY_RESULT if not single else UNARY_RESULT if op.run.gives is None else ""
        template = result + MADE.lstrip("\n") if result else KERNEL
    stages: dict[str, Any] = {
        "run": op.run,
        "stage_track": tracker(op),
        "stage_write": write,
        "stage_view": _stage_of(op),
    }
    core = _compiled(around(template, CORE), op, stages)
    stages |= {"core": core, "guarded": _guarded(op, core), "stage_full": full, "stage_failed": failed,
               "stage_refused": _refused, **STAGES}  # fmt: skip
    frame = ANNOUNCED.replace("#quick", quick(result)) if usual(op.schema) else TEMPLATE
    call = _compiled(around(template, frame), op, stages)
    call.__doc__ = op.doc
    call.core = core
    return call  # type: ignore[no-any-return]


def _guarded(op: Op, core: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(*args: Any) -> Any:
        try:
            return core(*args)
        except Exception:
            failed(op, args)
            raise

    return guarded


def failed(op: Op, args: tuple[Any, ...]) -> None:
    """What a tracked call would have said before its kernel did: a view that may not be used is found first.

    Called while the error of a call is handled; what that arose from inside the engine is no concern of the script.
    """
    if (error := sys.exception()) is not None:
        error.__context__ = _outside(error.__context__)
    if op.derivative is None or op.schema.writes or not grad_mode.enabled:
        return
    for index in op.derivative.indices:
        for value in args[index] if isinstance(args[index], (list, tuple)) else (args[index],):
            try:
                gradient_edge(value)
            except RuntimeError as error:
                raise error.with_traceback(None) from None


def _outside(error: BaseException | None) -> BaseException | None:
    """The first of these exceptions, each of which arose while the next was handled, that the script itself handled."""
    while error is not None and error.__traceback__ is not None and is_ours(error.__traceback__.tb_frame):
        error = error.__context__
    return error


def _refused(op: Op, args: tuple[Any, ...], error: Exception) -> None:
    """Say to the recording why a call failed; raises where :func:`failed` knows another reason."""
    try:
        failed(op, args)
    except RuntimeError as reason:
        refused(op.schema.name, reason)
        raise
    refused(op.schema.name, error)


def _composite(op: Op) -> Callable[..., Any]:
    """Composites get the schema's signature too, so that its defaults need not be said twice."""
    function = op.composite
    assert function is not None
    named = {p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY}
    core = _compiled(COMPOSITE, op, {"function": function}, named)
    frame = ANNOUNCED_COMPOSITE if usual(op.schema) else COMPOSITE_CALL
    call = _compiled(frame, op, {"core": core, "stage_full": full, "stage_refused": refused, **STAGES})
    call.__doc__ = op.doc
    return call  # type: ignore[no-any-return]


def number_first(op: Op, args: tuple[Any, ...]) -> Any:
    """Call an op whose first operand is a Python number: the generated callables expect a tensor there."""

    def core(*values: Any) -> Any:
        if op.run is None:
            return op.composite(*values)  # type: ignore[misc]
        out = op.run(*values)
        if grad_mode.enabled and op.derivative is not None and any_wants(values):
            track(op, values, out)
        return out

    return full(op, core, args) if journal.full else core(*args)


def _compiled(template: str, op: Op, names: dict[str, Any], named: Collection[str] = ()) -> Any:
    schema = op.schema
    symbol = "op_" + re.sub(r"\W", "_", op.qualified)
    passed = "".join(f"{f'{a.name}=' if a.name in named else ''}{safe(a.name)}, " for a in schema.arguments)
    defaults = {f"d_{a.name}": a.default for a in schema.arguments if a.default is not REQUIRED}
    rest = "".join(f" and {safe(a.name)} is d_{a.name}" for a in schema.arguments[2:])
    other_kind = getattr(op.run, "gives", None) is not None
    source = template.format(
        name=symbol,
        signature=_signature(schema),
        names=passed,
        wants=_wants(op),
        plain_rest=rest,
        fits=FITS_SAME if len(schema.arguments) == 1 else FITS_OTHER if other_kind else FITS,
        held="".join(f"_{number}, " for number in range(len(schema.arguments))),
        gives="gives" if other_kind else "kind",
        usual=usual(schema),
        pattern=pattern(schema),
        written="".join(f"{written(a, schema)}, " for a in schema.arguments),
        label=repr(schema.name),
        array_names=", ".join(["a", *(safe(a.name) for a in schema.arguments[1:])]),
        second=safe(schema.arguments[1].name) if len(schema.arguments) > 1 else "",
    )
    scope = {**names, **defaults, "op": op, "journal": journal, "grad_mode": grad_mode, "Tensor": Tensor}
    scope |= {"any_wants": any_wants, "new": object.__new__, "quick": op.quick, "mark_view": mark_view,
              "untracked": UNTRACKED}  # fmt: skip
    scope["quick_errors"] = (ValueError, IndexError, TypeError, OverflowError)
    if isinstance(op.run, Pointwise):
        by_rule = op.run.strides is output_strides
        scope |= {"ufunc": op.run.ufunc, "quick": op.run.quick, "numbers": NUMBERS, "gives": op.run.gives,
                  "ndarray": np.ndarray, "asarray": np.asarray, "canonical": canonical,
                  "in_order": in_order if by_rule else _never, "orderly": orderly if by_rule else _dense,
                  "settled": settled, "by_rule": by_rule}  # fmt: skip
    exec(compile(source, f"<op {op.qualified}>", "exec"), scope)
    return scope[symbol]


def orderly(array: Array) -> bool:
    """Whether an operand leaves TensorIterator no choice but row-major results: it is that itself, or one element."""
    return array.flags.c_contiguous or not any(array.strides)


def in_order(result: Array, operand: Array) -> bool:
    """Whether NumPy laid the result of orderly operands out as PyTorch does."""
    return result.flags.c_contiguous and 1 not in result.shape and orderly(operand)


def _never(result: Array, operand: Array) -> bool:
    return False


def _dense(array: Array) -> bool:
    return array.flags.c_contiguous


def _signature(schema: Schema) -> str:
    parts = []
    for argument in schema.arguments:
        default = "" if argument.default is REQUIRED else f"=d_{argument.name}"
        parts.append(f"{safe(argument.name)}{default}")
    # A required keyword-only argument may follow defaults in a schema line; Python asks for the star.
    seen_default = False
    for position, argument in enumerate(schema.arguments):
        if argument.default is not REQUIRED:
            seen_default = True
        elif seen_default:
            parts.insert(position, "*")
            break
    return ", ".join(parts)


def _wants(op: Op) -> str:
    """The test, as source, whether a differentiable argument requires grad."""
    if op.derivative is None:
        return "False"
    by_name = {a.name: a for a in op.schema.arguments}
    first = op.schema.arguments[0]
    return " or ".join(_want(by_name[name], first) for name in op.derivative.inputs)


def _want(argument: Argument, first: Argument) -> str:
    name = safe(argument.name)
    if argument.listed:
        return f"any_wants({name})"
    if argument.name == "self" and argument is first:
        return "self._requires_grad"
    return f"(isinstance({name}, Tensor) and {name}._requires_grad)"


def any_wants(tensors: Any) -> bool:
    """Whether one of these requires grad; None and numbers do not."""
    return tensors is not None and any(isinstance(t, Tensor) and t._requires_grad for t in tensors)


# ---- the stages --------------------------------------------------------------------------------------------------


def write(op: Op, args: tuple[Any, ...], wanted: bool) -> Tensor:
    """Run an in-place op: check, compute, write, bump the version, rebase the history."""
    target: Tensor = args[0]
    differentiable = target.dtype.category >= FLOAT
    checked = wanted and (differentiable or op.name != "copy_")  # copy_ asks for the dtype before it looks
    check_inplace(target, checked or (op.derivative is None and _is_tracked(op, args)))
    wanted = wanted and differentiable
    node = None
    if wanted and op.derivative is not None:
        node = make_node(op, args)
        original = original_for_saving(node, target)
        node.save_arguments(args if original is None else (original, *args[1:]))
    op.run(*args)  # type: ignore[misc]
    if target._inference:
        check_inference(target)
    else:
        bump_version(target)
    if node is not None:
        if getattr(op.run, "relayouts", False):  # the tensor itself reads otherwise; no element was written
            set_history(node, [target])
            if target._base_tensor is not None:
                info_of(target).version = target.version_counter.value
            return target
        rebase_history(target, node)
        node.save_results((target,))
        if target._base_tensor is not None:
            bind_to_view(node, target)
    return target


def _is_tracked(op: Op, args: tuple[Any, ...]) -> bool:
    """Whether an op without a derivative is given what requires grad, and so may not write leaves; logic may."""
    return grad_mode.enabled and not op.name.startswith("logical_") and any_wants(args)


def view(op: Op, args: tuple[Any, ...]) -> Any:
    """Run a view op: compute the layout, make the alias, record its base and node."""
    source: Tensor = args[0]
    return _seen(op, args, op.view(source.layout_, *args[1:]))  # type: ignore[misc]


def view_by_tensor(op: Op, args: tuple[Any, ...]) -> Any:
    """Run a view op whose rule has to see the tensor itself: its dtype, storage or conjugate bit."""
    return _seen(op, args, op.view(*args))  # type: ignore[misc]


def by_tensor(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a view rule that wants the tensor instead of its Layout."""
    rule.by_tensor = True  # type: ignore[attr-defined]
    return rule


def _stage_of(op: Op) -> Callable[..., Any]:
    return view_by_tensor if getattr(op.view, "by_tensor", False) else view


def _seen(op: Op, args: tuple[Any, ...], layouts: Any) -> Any:
    source: Tensor = args[0]
    if isinstance(layouts, list):
        made = tuple(_viewed(source, layout) for layout in layouts)
        _track_views(op, args, source, made, multi=True)
        return made
    result = _viewed(source, layouts)
    _track_views(op, args, source, (result,), multi=False)
    return result


def _viewed(source: Tensor, layout: Any) -> Tensor:
    if isinstance(layout, Layout):
        return alias(source, layout)
    layout, kind, *bits = layout
    assert isinstance(kind, dtype)
    result = alias(source, layout, kind)
    if bits:
        result._conj, result._neg = bits
    return result


# Views that sizes and strides of the base cannot express: made again by calling the op.
REPLAYED = {"_view_as_real": "", "_view_as_complex": "", "_conj": "_conj", "_neg_view": "_neg"}
"""By the op's name, the lazy bit that it turns over."""


def _replay(op: Op, args: tuple[Any, ...]) -> Callable[[Tensor], Tensor]:
    bit = REPLAYED[op.name]

    def again(source: Tensor) -> Tensor:
        result: Tensor = op.call(source, *args[1:])
        if bit:
            setattr(result, bit, not getattr(source, bit))
        return result

    return again


def _track_views(op: Op, args: tuple[Any, ...], source: Tensor, made: tuple[Tensor, ...], multi: bool) -> None:
    if op.derivative is None:  # detach() and its like: the storage is shared, but autograd sees no view
        for result in made if source._inference else ():
            mark_inference(result, "detached")
        if grad_mode.inference and not source._inference and op.schema.overload == "dtype":
            mark_inference(made[0])  # PyTorch makes its keys anew
        return
    for result in made:
        mark_view(result, source, multi, _replay(op, args) if op.name in REPLAYED else None)
    if grad_mode.enabled and source._requires_grad and not source._inference:
        carriers = [m for m in made if m.dtype.category >= FLOAT]
        if carriers:
            node = make_node(op, args)
            set_history(node, carriers)
            node.save_arguments(args)
            node.save_results(made)
