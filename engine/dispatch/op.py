"""An op, declared once.

``define(...)`` takes PyTorch's schema line, a sentence, how the result comes about, gradient formulas and samples,
checks them against each other, and returns the frozen :class:`Op`. Everything else is derived: the callable with
its whole path (:mod:`stridescope.engine.dispatch.call`), the ``torch`` function and Tensor method, the op page and
the tests.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stridescope.engine.autograd.formula import Derivative, Formula
from stridescope.engine.autograd.plan import FACETS, INCOMING
from stridescope.engine.dispatch.frozen import refusing
from stridescope.engine.dispatch.out_rule import USUAL, Out
from stridescope.engine.dispatch.pinned import pinning
from stridescope.engine.dispatch.return_types import with_names
from stridescope.engine.dispatch.schema import Schema, parse

Sample = tuple[Any, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Op:
    """One op of the engine.

    Exactly one of these says how the result comes about:
        view: a rule from the first argument's Layout and the other arguments to a Layout (or a list of them, or a
            (Layout, dtype) pair); no byte moves.
        run: the backend's part: a function of the bound arguments that returns fresh tensors, usually made by a
            family of :mod:`stridescope.engine.kernels` such as ``pointwise(np.exp, …)``.
        composite: a function that calls other ops; it makes no node of its own.

    Attributes:
        grads: argument name(s) -> formula; an argument that is not named is not differentiable.
        node: the grad_fn's class name, by default the op's name in camel case with ``Backward0``.
        out: how it takes ``out=``.
        same_as: the op, by its name with overload, that this one is another name of.
        samples: argument tuples the tests try; a tuple of ints inside stands for a tensor of that shape.
    """

    schema: Schema
    doc: str
    view: Callable[..., Any] | None
    run: Callable[..., Any] | None
    composite: Callable[..., Any] | None
    derivative: Derivative | None
    samples: tuple[Sample, ...]
    method: bool
    function: bool
    namespace: str
    differentiable_outputs: tuple[int, ...] | None
    quick: Callable[..., Any] | None
    out: Out = USUAL
    same_as: str = ""

    @property
    def name(self) -> str:
        """The public name, such as ``add`` or ``add_``."""
        return self.schema.name

    @property
    def qualified(self) -> str:
        """The name with its overload, such as ``add.Tensor``."""
        return f"{self.schema.name}.{self.schema.overload}" if self.schema.overload else self.schema.name

    @property
    def kind(self) -> str:
        """``view``, ``kernel`` or ``composite``."""
        return "view" if self.view else "kernel" if self.run else "composite"

    @functools.cached_property
    def first(self) -> Op:
        """The op that this one is another name of, which is what ``out=`` calls; most are themselves."""
        return next((op for op in DECLARED if op.qualified == self.same_as), self)

    @functools.cached_property
    def call(self) -> Callable[..., Any]:
        """The callable with its whole path, written from the schema when the op is first used."""
        from stridescope.engine.dispatch.call import build

        return build(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the op by its schema, without overload resolution."""
        return self.call(*args, **kwargs)


# Filled by define() in the order of the modules that stridescope.engine.ops lists.
DECLARED: list[Op] = []


def define(
    schema: str,
    *,
    doc: str,
    view: Callable[..., Any] | None = None,
    run: Callable[..., Any] | None = None,
    composite: Callable[..., Any] | None = None,
    grads: Mapping[str, Callable[..., Any]] | None = None,
    node: str | None = None,
    samples: Sequence[Sample] = (),
    method: bool | None = None,
    function: bool = True,
    namespace: str = "torch",
    differentiable_outputs: Sequence[int] | None = None,
    inplace: bool = False,
    quick: Callable[..., Any] | None = None,
    out: Out = USUAL,
    same_as: str = "",
) -> Op:
    """Declare an op; raises ValueError when its parts contradict each other.

    ``inplace`` also declares the form with an underscore, which writes the result into ``self``. ``quick`` does what
    ``view`` does on the NumPy array itself, for the shortest path; it returns None (or raises) where it cannot. ``out``
    says how ``out=`` is taken, and ``same_as`` which op this is another name of.
    ``method`` says whether Tensor gets it (by default when the first argument is ``self``), ``function`` whether
    ``namespace`` does. ``differentiable_outputs`` lists the results that carry a grad_fn (by default all floating
    ones).
    """
    parsed = parse(schema)
    _check(parsed, doc, view, run, composite, grads or {})
    derivative = _derivative(parsed, node, grads or {})
    op = Op(
        schema=parsed,
        doc=doc,
        view=view,
        run=run and refusing(parsed, derivative, pinning(parsed, with_names(parsed, run))),
        composite=composite and with_names(parsed, composite),
        derivative=derivative,
        samples=tuple(samples),
        method=bool(parsed.arguments) and parsed.arguments[0].name == "self" if method is None else method,
        function=function,
        namespace=namespace,
        differentiable_outputs=None if differentiable_outputs is None else tuple(differentiable_outputs),
        quick=quick,
        out=out,
        same_as=same_as,
    )
    DECLARED.append(op)
    if inplace:
        _define_inplace(op, node, grads)
    return op


def no_derivative(name: str) -> Callable[..., Any]:
    """The formula of an op that PyTorch gives a node, but no derivative."""

    def refuse(grads: Any) -> Any:
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    return refuse


def _define_inplace(op: Op, node: str | None, grads: Mapping[str, Callable[..., Any]] | None) -> None:
    """Declare ``name_`` from ``name``: same formulas, same kernel, written into ``self``."""
    from stridescope.engine.dispatch.overlap import APART
    from stridescope.engine.dispatch.run import into

    text = op.schema.text.replace(op.name, f"{op.name}_", 1).replace("Tensor self", "Tensor(a!) self", 1)
    head, _, _ = text.rpartition("->")
    if node == "NotImplemented":
        grads = dict.fromkeys(grads or (), no_derivative(f"{op.name}_"))
    define(
        f"{head}-> Tensor(a!)",
        doc=f"{op.doc} Written in place.",
        run=into(op.run, apart=op.name in APART),
        grads=grads,
        node=node or (op.derivative.name if op.derivative else None),
        samples=op.samples,
        method=op.method,
        function=op.function and op.namespace in ("torch", "torch._C._nn"),
        namespace=op.namespace,
    )


def _check(schema: Schema, doc: str, view: Any, run: Any, composite: Any, grads: Mapping[str, Any]) -> None:
    label = f"op {schema.name}.{schema.overload}"
    if sum(part is not None for part in (view, run, composite)) != 1:
        raise ValueError(f"{label}: give exactly one of view, run and composite")
    if not doc:
        raise ValueError(f"{label}: give a doc sentence")
    if view is not None and not schema.is_view:
        raise ValueError(f"{label}: a view rule needs an alias mark such as Tensor(a) on the result")
    known = {a.name for a in schema.arguments}
    for names in grads:
        for name in names.split(","):
            if name.strip() not in known:
                raise ValueError(f"{label}: there is a gradient for {name.strip()}, which is no argument")
    for names, formula in grads.items():
        for want in Formula.of(names, formula).wants:
            if not _answerable(want, known, schema):
                raise ValueError(f"{label}: the gradient of {names} asks for {want}, which nothing provides")


def _answerable(want: str, known: set[str], schema: Schema) -> bool:
    if want in INCOMING or want in known or want == "result" or want in schema.return_names:
        return True
    if want.startswith("result") and want[6:].isdigit():
        return int(want[6:]) < len(schema.returns)
    whole = known | {"result", *schema.return_names}
    return any(want.endswith(suffix) and want[: -len(suffix)] in whole for suffix in FACETS)


def _derivative(schema: Schema, node: str | None, grads: Mapping[str, Callable[..., Any]]) -> Derivative | None:
    if not grads:
        return None
    formulas = tuple(Formula.of(names, formula) for names, formula in grads.items())
    listed = {name for formula in formulas for name in formula.inputs}
    inputs = tuple(a.name for a in schema.arguments if a.name in listed)
    arguments = tuple(a.name for a in schema.arguments)
    tensors = frozenset(a.name for a in schema.arguments if a.is_tensor)
    scalars = frozenset(a.name for a in schema.arguments if a.type == "Scalar")
    name = node or node_name(schema.name)
    return Derivative(name, inputs, formulas, arguments, schema.return_names, tensors, scalars)


def node_name(name: str) -> str:
    """The node's class name of an op: ``max_pool2d`` and ``relu_`` give MaxPool2DBackward0 and ReluBackward0."""
    words = [word for word in name.strip("_").split("_") if word]
    camel = "".join(word[:1].upper() + _digit_words(word[1:]) for word in words)
    return f"{camel}Backward0"


def _digit_words(rest: str) -> str:
    """PyTorch capitalises the letter after a digit: ``conv2d`` -> Conv2D."""
    return "".join(c.upper() if rest[i - 1 : i].isdigit() else c for i, c in enumerate(rest))
