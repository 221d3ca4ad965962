"""Ops of the user's own, under ``torch.ops.NAMESPACE``: their schema, their kernels by device, their derivative."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from stridescope.engine.autograd.function import Function
from stridescope.engine.autograd.modes import grad_mode, no_grad
from stridescope.engine.device import device as Device
from stridescope.engine.dispatch.schema import REQUIRED, Argument, parse
from stridescope.engine.dtype import dtype
from stridescope.engine.tensor import Tensor, bump_version
from stridescope.engine.torch._ops import OpOverload, OpOverloadPacket, _OpNamespace, first_of
from stridescope.engine.torch._signatures import dtype_of

ANY = "any"  # the device type of a kernel for all devices
_NUMBER = (int, float, complex)
_TAKEN: dict[str, tuple[str, type | tuple[type, ...]]] = {
    "Tensor": ("Tensor", Tensor),
    "Scalar": ("number", _NUMBER),
    "float": ("float", (int, float)),
    "int": ("int", int),
    "SymInt": ("int", int),
    "bool": ("bool", (bool, int)),
    "str": ("str", str),
    "ScalarType": ("int", (dtype, int)),
    "Device": ("Device", (Device, str, int)),
}
_ALIASED = (
    "{name} (with implementation in {place}): The output of this custom operator (1) must not also be an input to this "
    "custom operator and (2) may not alias any inputs to this custom operator or other returns. The most common way to "
    "trigger this error is if we have y = custom_op(x) and y and x are the same Tensor. Please instead return a clone "
    "of the offending output tensor(s) (e.g. return x.clone()) or refactor the custom operator to not return y."
)


class CustomOverload(OpOverload):
    """One op of the user's: ``torch.ops.mylib.f.default``."""

    def __init__(self, namespace: str, schema: str) -> None:
        super().__init__(namespace, parse(schema))
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.composite: Callable[..., Any] | None = None
        self.checks_aliases = False
        self.backward: Callable[..., Any] | None = None
        self.setup_context: Callable[..., Any] | None = None
        self.function = _function_of(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Check the arguments as the schema says, and run the kernel of their device."""
        places, names = self._bound(args, kwargs)
        if self.composite is not None:
            return self.composite(*places, **names)
        tensors = [*_tensors((*places, *names.values()))]
        if grad_mode.enabled and any(tensor.requires_grad for tensor in tensors):
            return self.function.run(places, names)
        return self.run(places, names)

    # ---- the call ----

    def _bound(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        arguments, given = self.schema.arguments, dict(kwargs)
        open_ = [a for a in arguments if not a.keyword_only]
        if len(args) > len(open_):
            most = f"expected at most {len(open_)} argument(s) but received {len(args)} argument(s)"
            raise RuntimeError(f"{self.qualname}() {most}. Declaration: {self._schema}")
        values: list[Any] = []
        for place, argument in enumerate(arguments):
            at = args[place] if place < len(args) else given.pop(argument.name, _default(argument))
            if at is REQUIRED:
                missing = f"is missing value for argument '{argument.name}'"
                raise RuntimeError(f"{self.qualname}() {missing}. Declaration: {self._schema}")
            values.append(self._taken(place, argument, at))
        if given:
            raise RuntimeError(
                f"Unknown keyword argument '{next(iter(given))}' for operator '{self.qualname}'. Schema: {self._schema}"
            )
        named = {a.name: value for a, value in zip(arguments, values, strict=True) if a.keyword_only}
        return tuple(values[: len(open_)]), named

    def _taken(self, place: int, argument: Argument, value: Any) -> Any:
        """Return a value as kernels take it; raises RuntimeError where it is of another type than declared."""
        if value is None and argument.optional:
            return None
        word, kinds = _TAKEN.get(argument.type, (argument.type, object))
        if argument.listed:
            items = list(value) if isinstance(value, (list, tuple)) else value
            if isinstance(items, list) and all(_is_a(each, kinds, argument) for each in items):
                return items
            word = f"List[{word}]"
        elif _is_a(value, kinds, argument):
            return bool(value) if argument.type == "bool" else value
        raise RuntimeError(
            f"{self.qualname}() Expected a value of type '{word}' for argument '{argument.name}' but instead found "
            f"type '{type(value).__name__}'.\nPosition: {place}\nValue: {value!r}\nDeclaration: {self._schema}\n"
            f"Cast error details: {_why(word, value)}"
        )

    def run(self, places: Sequence[Any], names: dict[str, Any]) -> Any:
        """Run the kernel, below autograd; what it may write into counts one write more."""
        tensors = list(_tensors((*places, *names.values())))
        kernel = self._kernel(next((tensor.device.type for tensor in tensors), "cpu"))
        with no_grad():
            result = kernel(*places, **names)
        if self.checks_aliases:
            self._check_aliases(kernel, tensors, result)
        values = dict(zip((a.name for a in self.schema.arguments), (*places, *names.values()), strict=True))
        for tensor in _tensors([values[name] for name in self.schema.writes]):
            bump_version(tensor)
        return result

    def _kernel(self, on: str) -> Callable[..., Any]:
        found = self.kernels.get(on) or (self.kernels.get(ANY) if on != "meta" else None)
        if found is not None:
            return found
        if on == "meta":
            raise RuntimeError(
                f"There was no fake impl registered for <CustomOpDef({self.qualname})>. This is necessary for "
                f"torch.compile/export/fx tracing to work. Please use `{self._opname}.register_fake` to add an fake "
                "impl."
            )
        raise NotImplementedError(
            f"Could not run '{self.name()}' with arguments from the '{on.upper()}' backend. This could be because the "
            "operator doesn't exist for this backend: register a kernel for it."
        )

    def _check_aliases(self, kernel: Callable[..., Any], tensors: Sequence[Tensor], result: Any) -> None:
        seen = {id(tensor.storage_) for tensor in tensors}
        for out in _tensors([result]):
            if id(out.storage_) in seen:
                place = f"<module '{getattr(kernel, '__module__', '?')}'>"
                raise RuntimeError(_ALIASED.format(name=self._opname, place=place))
            seen.add(id(out.storage_))


def _default(argument: Argument) -> Any:
    value = argument.default
    return dtype_of(value) if argument.type == "ScalarType" and isinstance(value, int) else value


def _is_a(value: Any, kinds: Any, argument: Argument) -> bool:
    if value is None:
        return argument.optional_items
    return isinstance(value, kinds)


def _why(word: str, value: Any) -> str:
    if word == "Tensor":
        return f"Unable to cast {value!r} to Tensor"
    if word == "number":
        return f"Cannot cast {value} to number"
    return (
        f"Unable to cast Python instance of type {type(value)} to C++ type '?' "
        "(#define PYBIND11_DETAILED_ERROR_MESSAGES or compile in debug mode for details)"
    )


def _tensors(values: Sequence[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


# ---- autograd ----------------------------------------------------------------------------------------------------


def _function_of(op: CustomOverload) -> Any:
    """The autograd Function of an op: its node is named after it, its formula is what was registered last."""

    def forward(ctx: Any, shape: tuple[Any, ...], *flat: Any) -> Any:
        places, names = _rebuilt(shape, flat)
        result = op.run(places, names)
        ctx.shape = shape
        if op.setup_context is not None:
            more = {"keyword_only_inputs": names} if names else {}
            op.setup_context(ctx=ctx, inputs=tuple(places), output=result, **more)
        return tuple(result) if isinstance(result, list) else result

    def backward(ctx: Any, *grads: Any) -> Any:
        if op.backward is None:
            raise RuntimeError(
                f"Trying to backward through {op} but no autograd formula was registered. Please use "
                "register_autograd to add one."
            )
        given = grads if op.schema.returns != ("Tensor[]",) else (list(grads),)
        found = op.backward(ctx, *given)
        return None, *_spread(ctx.shape, found if isinstance(found, tuple) else (found,))

    def run(places: Sequence[Any], names: dict[str, Any]) -> Any:
        shape, flat = _flattened(places, names)
        found = made.apply(shape, *flat)
        return list(found) if op.schema.returns == ("Tensor[]",) else found

    name = f"GeneratedBackwardFor_{op.namespace}_{op._opname}_{op._overloadname}"
    body = {"forward": staticmethod(forward), "backward": staticmethod(backward), "run": staticmethod(run)}
    made: Any = type(name, (Function,), body)
    return made


def _flattened(places: Sequence[Any], names: dict[str, Any]) -> tuple[tuple[Any, ...], list[Any]]:
    """Take lists apart, so that autograd sees the tensors inside; the first result says how to put them together."""
    lengths = [len(value) if isinstance(value, list) else -1 for value in places]
    flat = [item for value in places for item in (value if isinstance(value, list) else [value])]
    return (tuple(lengths), tuple(names.items())), flat


def _rebuilt(shape: tuple[Any, ...], flat: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
    left, places = list(flat), []
    for length in shape[0]:
        places.append(left.pop(0) if length < 0 else [left.pop(0) for _ in range(length)])
    return places, dict(shape[1])


def _spread(shape: tuple[Any, ...], grads: Sequence[Any]) -> Iterator[Any]:
    """The gradients of a call in a row: a list's one by one."""
    for place, length in enumerate(shape[0]):
        grad = grads[place] if place < len(grads) else None
        if length < 0:
            yield grad
        else:
            yield from (grad if grad is not None else [None] * length)


# ---- torch.ops.NAMESPACE -----------------------------------------------------------------------------------------


_packets: dict[str, dict[str, OpOverloadPacket]] = {}  # by namespace and name: what was defined so far


@functools.cache
def namespace_of(name: str) -> _OpNamespace:
    """The namespace of this name, empty at first."""
    packets = _packets.setdefault(name, {})
    return _OpNamespace(name, packets.get, packets.keys)


def declare(namespace: str, schema: str, *, again: bool = False) -> CustomOverload:
    """Make an op with a schema line; raises RuntimeError where there is one, unless it may be made ``again``."""
    made = CustomOverload(namespace, schema)
    packets = _packets.setdefault(namespace, {})
    packet = packets.setdefault(made._opname, OpOverloadPacket(namespace, made._opname, first_of))
    if made._overloadname in packet._overloads and not again:
        raise RuntimeError(
            f"Tried to register an operator ({made._schema}) with the same name and overload name multiple times. Each "
            "overload's schema should only be registered with a single call to def()."
        )
    packet.add(made)
    return made


def find(qualname: str) -> CustomOverload:
    """The op that ``mylib::f`` or ``mylib::f.overload`` names; raises RuntimeError where there is none."""
    namespace, _, rest = qualname.partition("::")
    name, _, overload = rest.partition(".")
    packet = _packets.get(namespace, {}).get(name)
    if packet is None or (overload or "default") not in packet._overloads:
        raise RuntimeError(f"operator {qualname} does not exist")
    return cast(CustomOverload, packet._overloads[overload or "default"])
