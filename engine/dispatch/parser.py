"""Argument parsing as PyTorch's Python binding does it: overloads, conversions, error texts.

A :class:`Function` is what ``torch.sum`` or ``Tensor.sum`` is: a name with its overloads in order. The first overload
whose arguments fit is called. Which overload fits a call with plain positional arguments depends on their types
alone most of the time, so that choice is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stridescope.engine.dispatch.bound import Bound
from stridescope.engine.dispatch.call import number_first
from stridescope.engine.dispatch.converters import convert, expected_name, is_index
from stridescope.engine.dispatch.invalid_arguments import (
    Mismatch,
    Unpacked,
    given,
    marked,
    type_name,
    unrecognized,
    why_not,
)
from stridescope.engine.dispatch.op import Op
from stridescope.engine.dispatch.out_names import checked, shown_out
from stridescope.engine.dispatch.plans import Unplanned
from stridescope.engine.dispatch.plans import plan as make_plan
from stridescope.engine.dispatch.schema import REQUIRED, Argument
from stridescope.engine.dispatch.torch_function import Overrides, asked, overrides, overriding
from stridescope.engine.tensor import Tensor

if TYPE_CHECKING:
    from stridescope.engine.dispatch.older_forms import OlderForm

# Functions that take a Python number where the schema says Tensor (allow_numbers_as_tensors of PyTorch's
# python_arg_parser.cpp).
NUMBERS_AS_TENSORS = frozenset(
    f"{name}{mark}"
    for name in ("add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide", "copy")
    for mark in ("", "_")
)  # fmt: skip
ALIASES = {"dim": "axis", "keepdim": "keepdims", "input": "x", "other": "x2"}


# Arguments that have another name in Python than in the schema.
SHOWN = {"copy_ src": "other"}
# Overloads that PyTorch tries before those that were declared earlier.
TRIED_FIRST = frozenset(
    (
        "view.dtype",
        "tensor_split.indices",
        "tensor_split.tensor_indices_or_sections",
        "repeat_interleave.self_Tensor",
        "float_power_.Tensor",
        "narrow.Tensor",
        "argsort.stable",
        "count_nonzero",
    )
)


class Signature:
    """One overload as the parser sees it.

    ``rename`` maps schema names to public ones: ``self`` is ``input`` in a ``torch`` function.
    """

    def __init__(self, op: Op, method: bool, arguments: Sequence[Argument] = ()) -> None:
        self.op, self.method = op, method
        self.arguments = arguments or op.schema.arguments
        self.names = tuple(
            ("input" if a.name == "self" and a.is_tensor and not method else SHOWN.get(f"{op.name} {a.name}", a.name))
            for a in self.arguments
        )
        self.positional = [a for a in self.arguments if not a.keyword_only]
        self.numbers_fit = op.name in NUMBERS_AS_TENSORS
        first = 1 if self.arguments and self.arguments[0].name == "self" else 0
        rest = self.positional[first:]
        alone = len(rest) == 1 and (method or not first)
        self.varargs = alone and rest[0].listed and not rest[0].length and rest[0].type in ("int", "SymInt")
        self.first = first
        self.takes_out = not method and bool(shown_out(op.qualified))
        self.least = sum(a.default is REQUIRED for a in self.arguments)
        self.most = len(self.arguments) + self.takes_out

    def begins_with_number(self, values: Sequence[Any]) -> bool:
        """Whether a Python number stands where the schema has a tensor, first of all."""
        return self.numbers_fit and not isinstance(values[0], Tensor)

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """The converted arguments in schema order; raises Mismatch."""
        args = self._gathered(args)
        if kwargs and self.method and len(self.arguments) == 1:
            raise Mismatch(f"TensorBase.{self.op.name}() takes no keyword arguments")
        if len(args) > len(self.positional):
            raise Mismatch(self._too_many(len(args)))
        values: list[Any] = []
        left = dict(kwargs)
        unpacked = ""
        for position, (argument, name) in enumerate(zip(self.arguments, self.names, strict=True)):
            try:
                values.append(self._one(position, argument, name, args, left))
            except Unpacked as error:
                unpacked = str(error)
        if left:
            raise Mismatch(self._unexpected(left, len(args)))
        if unpacked:
            raise Unpacked(unpacked)
        return values

    def _unexpected(self, left: dict[str, Any], given: int) -> str:
        name = next(iter(left))
        if name in self.names[:given]:
            return f"{self.op.name}() got multiple values for argument '{name}'"
        return f"{self.op.name}() got an unexpected keyword argument '{name}'"

    def _gathered(self, args: Sequence[Any]) -> Sequence[Any]:
        first = self.first
        if self.varargs and len(args) > first and is_index(args[first]):
            return (*args[:first], tuple(args[first:]))
        return args

    def _one(self, position: int, argument: Argument, name: str, args: Sequence[Any], left: dict[str, Any]) -> Any:
        shown = position - (1 if self.method else 0) + 1
        if position < len(args) and not argument.keyword_only:
            return self._converted(argument, name, args[position], f" (position {shown})")
        for key in (name, ALIASES.get(name, ""), "x1" if name == "input" else ""):
            if key and key in left:
                return self._converted(argument, name, left.pop(key), "")
        if argument.default is REQUIRED:
            raise Mismatch(self._missing(position, left))
        return argument.default

    def _converted(self, argument: Argument, name: str, value: Any, place: str) -> Any:
        try:
            return convert(argument, value, self.numbers_fit)
        except Mismatch as mismatch:
            kind, said = type(mismatch), str(mismatch)
        # Raised out here, so that the new one does not know the other: its traceback holds the caller's tensors.
        if kind is Unpacked:
            raise Unpacked(f"{self.op.name}(): argument '{name}' failed to unpack the object {said}")
        start = f"{self.op.name}(): argument '{name}'{place} must be {expected_name(argument)}"
        if argument.listed and argument.type == "Tensor" and isinstance(value, (list, tuple)):
            raise Mismatch(_bad_item(value, self.arguments.index(argument) - self.method))
        if said.startswith("found element"):
            raise Mismatch(f"{start}, but {said}" if place else f"{start}, not {type_name(value)}")
        raise Mismatch(f"{start}, not {said}")

    def _too_many(self, given: int) -> str:
        hidden = 1 if self.method else 0
        count, least, given = len(self.positional) - hidden, self.least - hidden, given - hidden
        if not count and self.method and len(self.arguments) == 1:
            return f"TensorBase.{self.op.name}() takes no arguments ({given} given)"
        if least != count:
            return f"{self.op.name}() takes from {least} to {count} positional arguments but {given} were given"
        plural, were = "" if count == 1 else "s", "was" if given == 1 else "were"
        return f"{self.op.name}() takes {count} positional argument{plural} but {given} {were} given"

    def _missing(self, position: int, left: dict[str, Any]) -> str:
        """What is said when nothing was given for the argument at this position; those before it were."""
        names = [
            n
            for i, (a, n) in enumerate(zip(self.arguments, self.names, strict=True))
            if a.default is REQUIRED and i >= position and n not in left
        ]
        listed = ", ".join(f'"{n}"' for n in names)
        plural = "s" if len(names) == 1 else ""  # as PyTorch has it
        return f"{self.op.name}() missing {len(names)} required positional argument{plural}: {listed}"

    def checked_out(self, out: Any) -> Any:
        """``out`` as the op takes it; see :func:`stridescope.engine.dispatch.out_names.checked`."""
        return checked(out, self.op.qualified, self.op.schema.returns, len(self.arguments), self.numbers_fit)

    def refusal_of_out(self, out: Any) -> Mismatch | None:
        """Why this overload does not take ``out``; None when it does."""
        try:
            self.checked_out(out)
        except Mismatch as mismatch:
            return mismatch.with_traceback(None)
        return None

    def shown(self) -> str:
        """The overload as the error text lists it."""
        return f"({', '.join(self.parts())})"

    def parts(self) -> list[str]:
        """The arguments of the overload as the error text lists them, with the star between them."""
        parts, star = [], False
        out = "" if self.method else shown_out(self.op.qualified)
        for argument, name in zip(self.arguments, self.names, strict=True):
            if self.method and name == "self":
                continue
            if argument.keyword_only and not star:
                star = True
                parts.append("*")
            if name == "dtype" and "layout" in self.names and out:  # before what says how the tensor is made
                parts.append(out)
                out = ""
            shown = False if name == "pin_memory" else argument.default
            default = "" if argument.default is REQUIRED else f" = {_shown_default(shown, argument.length)}"
            parts.append(f"{expected_name(argument)} {name}{default}")
        if out:
            parts.extend((out,) if star else ("*", out))
        return parts


def _shown_default(value: Any, length: int) -> str:
    if isinstance(value, tuple):
        each = ",".join(map(str, value))  # several ints stand there as C++ writes them
        return str(value[0]) if length and len(set(value)) == 1 else f"{{{each}}}" if value else "[]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def refuse_items(items: Sequence[Any]) -> None:
    """Raise PyTorch's TypeError when one of the items is no tensor."""
    if not all(isinstance(item, Tensor) for item in items):
        raise TypeError(_bad_item(items, 0))


def _bad_item(items: Sequence[Any], place: int) -> str:
    for position, item in enumerate(items):
        if not isinstance(item, Tensor):
            return f"expected Tensor as element {position} in argument {place}, but got {type_name(item)}"
    return "expected a list of Tensors"


# Functions that PyTorch has twice, with a generator and without; here the generator has a default.
PAIRED = frozenset(("rand", "randn", "randint", "randperm"))


def _paired(signatures: Sequence[Signature]) -> list[Signature]:
    """The overloads as PyTorch tells them: each with a generator that has to be given, and without one."""
    told = []
    for one in signatures:
        given = [replace(a, default=REQUIRED) if a.name == "generator" else a for a in one.arguments]
        told += [Signature(one.op, one.method, given)]
        told += [Signature(one.op, one.method, [a for a in given if a.name != "generator"])]
    return told


def _failure(signature: Signature, args: Sequence[Any], kwargs: dict[str, Any]) -> Mismatch | None:
    """Why an overload does not take these arguments; None when it is ``out`` that does not fit."""
    try:
        signature.bind(args, {name: value for name, value in kwargs.items() if name != "out"})
    except Mismatch as mismatch:
        return mismatch.with_traceback(None)
    return None


class Function:
    """A public function or method: a name and its overloads.

    Calling it binds the arguments to the first overload that fits and runs that op. ``out=`` is understood by
    every function whose ops are kernels. ``older`` are hidden forms, tried last: see
    :mod:`stridescope.engine.dispatch.older_forms`.
    """

    def __init__(self, name: str, ops: Sequence[Op], method: bool, namespace: str = "torch") -> None:
        self.namespace = namespace
        self.__name__ = self.__qualname__ = name
        self.__doc__ = ops[0].doc
        self.signatures = [Signature(op, method) for op in sorted(ops, key=lambda op: op.qualified not in TRIED_FIRST)]
        self.told = _paired(self.signatures) if name in PAIRED else self.signatures
        self.plans: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self.method = method
        self.public: Any = self  # what scripts call it by
        self.older: Sequence[OlderForm] = ()
        self.takes_out = any(signature.takes_out for signature in self.signatures)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the first overload that fits."""
        if kwargs:
            return self.named(args, kwargs)
        plan = self.plans.get(tuple(map(type, args)))
        if plan is not None:
            try:
                return plan(*args)
            except Unplanned:
                pass
        return self.resolve(args, kwargs)

    def named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call with keyword arguments."""
        plan = self.plans.get((*map(type, args), *kwargs, *map(type, kwargs.values())))
        if plan is not None:
            try:
                return plan(*args, *kwargs.values())
            except Unplanned:
                pass
        return self.resolve(args, kwargs)

    def resolve(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Choose the overload, remember the choice where types decide it, and call; unless a class overrides it."""
        if Overrides.any_class and (found := overriding((*args, *kwargs.values()))):
            return asked(self.public, found, args, kwargs or None)
        try:
            return self._chosen(args, kwargs)
        except TypeError:  # what is no Tensor may override functions, too
            if not (found := overriding((*args, *kwargs.values()))):
                raise
        return asked(self.public, found, args, kwargs or None)

    def _chosen(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        whole, out = kwargs, kwargs.get("out") if self.takes_out else None
        if self.takes_out and "out" in kwargs:
            kwargs = {name: value for name, value in kwargs.items() if name != "out"}
        failures: list[Mismatch] = []
        for signature in self.signatures:
            try:
                values = signature.bind(args, kwargs if signature.takes_out else whole)
                if out is not None:
                    out = signature.checked_out(out)
            except Unpacked as refused:
                unfit = None if out is None else signature.refusal_of_out(out)
                if unfit is None:
                    raise TypeError(str(refused)) from None
                failures.append(unfit)
                continue
            except Mismatch as mismatch:
                # Without its traceback: that holds this frame, and the arguments would live until the next collection.
                failures.append(mismatch.with_traceback(None))
                continue
            if out is None and not signature.begins_with_number(values):
                self._remember(signature, args, kwargs)
            return self._run(signature, values, out)
        for form in self.older:
            if (meant := form.values(args, kwargs)) is not None:
                return self._run(form.signature, meant, out)
        raise self._error(failures, args, whole)

    def _run(self, signature: Signature, values: list[Any], out: Any) -> Any:
        if out is not None:
            from stridescope.engine.dispatch.out import write_out  # loaded when it is first asked for

            return write_out(signature.op, values, out)
        if signature.begins_with_number(values):
            return number_first(signature.op, tuple(values))
        return signature.op.call(*values)

    def _remember(self, signature: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if Overrides.any_class and any(overrides(type(value)) for value in (*args, *kwargs.values())):
            return  # it is asked each time
        planned = make_plan(signature, args, kwargs)
        if planned is not None:
            self.plans[(*map(type, args), *kwargs, *map(type, kwargs.values()))] = planned

    def _error(self, failures: list[Mismatch], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception:
        if kwargs and self.method and [len(s.arguments) for s in self.signatures] == [1]:
            return TypeError(f"TensorBase.{self.__name__}() takes no keyword arguments")
        if self.told is not self.signatures:
            failures = [_failure(signature, args, kwargs) or failures[0] for signature in self.told]
        likely = self._likely(failures, len(args) + len(kwargs))
        if likely is not None:
            return likely.kind(str(likely))
        shown = args[1:] if self.method else args
        start = f"{self.__name__}() received an invalid combination of arguments - got "
        text = f"{start}{given(shown, kwargs)}"
        if len(self.told) == 1:
            only = self.signatures[0]
            if unknown := unrecognized(only, len(shown), kwargs):
                return TypeError(f"{start}unrecognized keyword arguments: {', '.join(unknown)}")
            return TypeError(
                f"{start}{marked(only, shown, kwargs) or given(shown, kwargs)}, but expected {only.shown()}"
            )
        lines = [f" * {signature.shown()}\n{why_not(signature, shown, kwargs)}" for signature in self.told]
        return TypeError(f"{text}, but expected one of:\n" + "".join(lines))

    def _likely(self, failures: list[Mismatch], given: int) -> Mismatch | None:
        """The failure to report when only one overload takes that many arguments."""
        if len(failures) == 1 and not self.older:  # what has older forms names the form and not the argument
            return failures[0]
        fitting = [f for s, f in zip(self.told, failures, strict=True) if s.least <= given <= s.most]
        return fitting[0] if len(fitting) == 1 else None

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else Bound(self, instance)

    def __repr__(self) -> str:
        return f"<built-in method {self.__name__}>"
