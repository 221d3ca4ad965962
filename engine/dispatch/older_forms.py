"""Orders of arguments that PyTorch had once and still takes, with a warning: ``p.add_(-lr, grad)``.

They are tried when no overload of today fits, and no error lists them.
"""

from __future__ import annotations

from typing import Any

from stridescope.engine.dispatch.invalid_arguments import Mismatch
from stridescope.engine.dispatch.parser import Function, Signature
from stridescope.engine.dispatch.schema import parse
from stridescope.engine.warn import internal, warn_once

# By the function's name; in place alike.
_ADDED = ("(Scalar beta, Tensor self, Scalar alpha, {})", "(Scalar beta, Tensor self, {})")
_OPERANDS = {
    "addmm": "Tensor mat1, Tensor mat2",
    "addmv": "Tensor mat, Tensor vec",
    "addr": "Tensor vec1, Tensor vec2",
    "addbmm": "Tensor batch1, Tensor batch2",
    "baddbmm": "Tensor batch1, Tensor batch2",
}
FORMS: dict[str, tuple[str, ...]] = {
    "add": ("(Tensor self, Scalar alpha, Tensor other)",),
    "sub": ("(Tensor self, Scalar alpha, Tensor other)",),
    "addcmul": ("(Tensor self, Scalar value, Tensor tensor1, Tensor tensor2)",),
    "addcdiv": ("(Tensor self, Scalar value, Tensor tensor1, Tensor tensor2)",),
    "copy": ("(Tensor self, Tensor src, bool async=False)",),
    **{name: tuple(form.format(operands) for form in _ADDED) for name, operands in _OPERANDS.items()},
}
RENAMED = {"non_blocking": "async"}  # by their names of today
_ONCE = "an older form"  # PyTorch warns of the first one only, whichever it is


class OlderForm:
    """An order of arguments, and the overload of today that it means."""

    def __init__(self, function: Function, arguments: str) -> None:
        parsed = parse(f"{function.__name__}{arguments} -> Tensor").arguments
        if function.method:  # its tensor comes before all others
            parsed = tuple(sorted(parsed, key=lambda argument: argument.name != "self"))
        names = {argument.name for argument in parsed}
        self._function = function
        self._today = next(
            s for s in function.signatures if names <= {RENAMED.get(a.name, a.name) for a in s.arguments}
        )
        self._older = Signature(self._today.op, function.method, parsed)

    def values(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
        """The arguments in the order of today's overload; None where this form does not fit."""
        try:
            bound = self._older.bind(args, kwargs)
        except Mismatch:
            return None
        given = dict(zip((a.name for a in self._older.arguments), bound, strict=True))
        self._warn()
        return [
            given.get(RENAMED.get(argument.name, argument.name), argument.default) for argument in self._today.arguments
        ]

    @property
    def signature(self) -> Signature:
        """The overload that runs."""
        return self._today

    def _warn(self) -> None:
        name = self._function.__name__
        today = "".join(f"\n\t{name}{signature.shown()}" for signature in self._function.signatures)
        text = (
            f"This overload of {name} is deprecated:\n\t{name}{self._older.shown()}\n"
            f"Consider using one of the following signatures instead:{today}"
        )
        warn_once(internal(text, "torch/csrc/utils/python_arg_parser.cpp:1841"), once=_ONCE)


def with_older_forms(function: Function) -> Function:
    """The function, with the forms that it had."""
    forms = FORMS.get(function.__name__.removesuffix("_"), ())
    function.older = [OlderForm(function, arguments) for arguments in forms]
    return function
