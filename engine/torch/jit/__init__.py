"""``torch.jit``: traces, which keep what one run did, and scripts, which keep the program's branches and loops.

A scripted function runs here as Python runs it; what TorchScript refuses to compile is refused.
"""

from __future__ import annotations

import typing
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._elsewhere import file_of
from stridescope.engine.torch._not_yet import missing_from, refusal
from stridescope.engine.torch.jit import frontend
from stridescope.engine.torch.jit.frontend import check
from stridescope.engine.torch.jit.functions import (
    RecursiveScriptModule,
    ScriptFunction,
    ScriptModule,
    scripted_module,
)
from stridescope.engine.torch.jit.state import is_scripting, is_tracing
from stridescope.engine.torch.jit.tracing import TracerWarning, traced, tracer_warning
from stridescope.engine.torch.nn.modules.module import Module

Final = typing.Final
TopLevelTracedModule = RecursiveScriptModule
CompilationUnit = None


class Error(RuntimeError):
    """An error that a scripted program raised."""

    __module__ = "torch.jit"


def _deprecated(name: str, instead: str = "Please switch to `torch.compile` or `torch.export`.") -> None:
    # At a line of this file, as in PyTorch: such warnings are shown only where they concern the program itself.
    warnings.warn(f"`torch.jit.{name}` is deprecated. {instead}", DeprecationWarning, stacklevel=1)


def trace(
    func: Any, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True, check_inputs: Any = None,
    check_tolerance: float = 1e-5, strict: bool = True, _force_outplace: bool = False, _module_class: Any = None,
    _compilation_unit: Any = None, example_kwarg_inputs: Mapping[str, Any] | None = None, _store_inputs: bool = True,
) -> Any:  # fmt: skip
    """What one run of a function or module with these inputs does, as a function or module.

    Raises:
        RuntimeError: neither kind of example inputs is given, or the output cannot be one.
    """
    _deprecated("trace")
    if isinstance(func, (ScriptFunction, RecursiveScriptModule)):
        text = "The input to trace is already a ScriptModule, tracing it is a no-op. Returning the object as is."
        warnings.warn(text, stacklevel=2)
        return func
    if example_inputs is None and example_kwarg_inputs is None:
        raise RuntimeError("example_kwarg_inputs should be a dict")
    inputs = example_inputs if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    inputs = () if example_inputs is None else tuple(inputs)
    named = dict(example_kwarg_inputs or {})
    if isinstance(func, Module):
        _deprecated("trace_method")
    made = traced(func, inputs, named, strict)
    if check_trace:
        _check(func, made, inputs, named, check_tolerance)
    return RecursiveScriptModule(func, made) if isinstance(func, Module) else ScriptFunction(func, made, scripted=False)


def _check(func: Any, made: Any, inputs: tuple[Any, ...], named: dict[str, Any], tolerance: float) -> None:
    """Warn where the trace gives something else than the function with the same inputs."""
    from stridescope.engine.autograd.modes import no_grad
    from stridescope.engine.torch.testing import assert_close

    with no_grad():
        theirs, ours = func(*inputs, **named), made(*inputs, **named)
    pairs = zip(_outputs(theirs), _outputs(ours), strict=False)
    for number, (expected, actual) in enumerate(pairs, 1):
        try:
            assert_close(actual, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
        except AssertionError as error:
            tracer_warning(
                f"Output nr {number}. of the traced function does not match the corresponding output of the Python "
                f"function. Detailed error:\n{error}"
            )


def _outputs(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return [tensor for item in items for tensor in _outputs(item)]


def trace_module(mod: Module, inputs: dict[str, Any], *args: Any, **options: Any) -> Any:
    """The trace of a module's ``forward``."""
    if list(inputs) != ["forward"]:
        raise refusal("torch.jit", "trace_module of other methods than forward")
    return trace(mod, inputs["forward"], check_trace=options.get("check_trace", True))


def script(obj: Any, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """A function or module with its control flow kept.

    Raises:
        NotSupportedError: it has something that TorchScript cannot compile.
        RuntimeError: a name is not defined.
    """
    _deprecated("script")
    if isinstance(obj, (ScriptFunction, ScriptModule)):
        return obj
    if isinstance(obj, Module):
        return scripted_module(obj)
    if isinstance(obj, type):
        return obj
    if not callable(obj):
        raise RuntimeError(f"Can't be scripted: {obj!r} is neither a function nor a module")
    check(obj)
    return ScriptFunction(obj, obj, scripted=True)


def script_method(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a method of a ScriptModule to be compiled."""
    check(fn)
    marked: Callable[..., Any] = export(fn)
    return marked


def export(fn: Any) -> Any:
    """Mark a method that a scripted module offers beside ``forward``."""
    fn._exported = True
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Mark a method that stays Python; with or without arguments."""
    return drop if callable(drop) else lambda fn: fn


def unused(fn: Any) -> Any:
    """Mark a method that scripted code does not call."""
    return fn


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value; the type is for the compiler."""
    return the_value


class Attribute(typing.NamedTuple):
    """A value and its type."""

    value: Any
    type: Any


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    """The module itself; raises RuntimeError while it trains."""
    _deprecated("freeze", "Please use `torch.compile` instead.")
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your "
            "'nn.Module'."
        )
    if mod.training:
        raise RuntimeError("Freezing is currently only implemented for modules in eval mode. Please call .eval() on "
                           "your module before freezing.")  # fmt: skip
    return mod


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    """The module itself."""
    _deprecated("optimize_for_inference", "Please use `torch.compile` instead.")
    return mod


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Saved TorchScript is not here: ``torch.save(m.state_dict(), f)`` keeps the parameters."""
    raise refusal("torch.jit", "save")


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> Any:
    """Saved TorchScript is not here."""
    raise refusal("torch.jit", "load")


def isinstance_(obj: Any, target_type: Any) -> bool:
    """Whether an object is of a type."""
    return isinstance(obj, target_type)


file_of(f"{__name__}._trace", {"TracerWarning": TracerWarning, "trace": trace})
file_of(f"{__name__}._script", {"RecursiveScriptModule": RecursiveScriptModule, "ScriptModule": ScriptModule})
_missing = missing_from("torch.jit", __name__)


def __getattr__(name: str) -> Any:
    if name == "isinstance":
        return isinstance_
    if name in ("fork", "wait", "interface", "enable_onednn_fusion", "set_fusion_strategy", "strict_fusion"):
        raise refusal("torch.jit", name)
    return _missing(name)


__all__ = [
    "Attribute", "Error", "Final", "ScriptFunction", "ScriptModule", "TracerWarning", "annotate", "export", "freeze",
    "frontend", "ignore", "is_scripting", "is_tracing", "load", "optimize_for_inference", "save", "script",
    "script_method", "trace", "trace_module", "unused",
]  # fmt: skip
