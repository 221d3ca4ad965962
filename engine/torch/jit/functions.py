"""Scripted and traced functions and modules."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._not_yet import refusal
from stridescope.engine.torch.jit.frontend import check
from stridescope.engine.torch.jit.state import scripting
from stridescope.engine.torch.nn.modules.module import Module

_KINDS: dict[Any, str] = {int: "int", float: "float", bool: "bool", str: "str", Tensor: "Tensor"}


_NOTHING = object()


class ScriptFunction:
    """A function that was scripted or traced.

    Attributes:
        name: the function's name.
    """

    __module__ = "torch.jit"

    def __init__(self, function: Callable[..., Any], run: Callable[..., Any], scripted: bool) -> None:
        self._function, self._run, self._scripted = function, run, scripted
        self.name = self.__name__ = getattr(function, "__name__", "forward")
        self.__doc__ = function.__doc__
        self._parameters = list(inspect.signature(function).parameters.values())

    @property
    def qualified_name(self) -> str:
        """The name with PyTorch's prefix for compiled code."""
        return f"__torch__.{self.name}"

    def _kind(self, parameter: inspect.Parameter) -> str:
        annotation = parameter.annotation
        if isinstance(annotation, str):
            names = {kind.__name__: kind for kind in _KINDS}
            annotation = names.get(annotation.rpartition(".")[2], annotation)
        return "Tensor" if annotation is parameter.empty else _KINDS.get(annotation, "")

    @property
    def declaration(self) -> str:
        """The function's name, arguments and result, as error texts have them."""
        return (
            f"{self.name}({', '.join(f'{self._kind(p) or p.annotation} {p.name}' for p in self._parameters)}) -> Tensor"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it; raises RuntimeError when the arguments do not fit."""
        self._check(args, kwargs)
        if not self._scripted:
            return self._run(*args, **kwargs)
        with scripting():
            return self._run(*args, **kwargs)

    def _check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if len(args) > len(self._parameters):
            raise RuntimeError(
                f"{self.name}() expected at most {len(self._parameters)} argument(s) but received {len(args)} "
                f"argument(s). Declaration: {self.declaration}"
            )
        for place, parameter in enumerate(self._parameters):
            if place < len(args):
                self._check_one(place, parameter, args[place])
            elif parameter.name in kwargs:
                self._check_one(place, parameter, kwargs[parameter.name])
            elif parameter.default is parameter.empty:
                raise RuntimeError(
                    f"{self.name}() is missing value for argument '{parameter.name}'. Declaration: {self.declaration}"
                )

    def _check_one(self, place: int, parameter: inspect.Parameter, value: Any) -> None:
        kind = self._kind(parameter)
        wanted = {"Tensor": Tensor, "int": int, "float": (float, int), "bool": bool, "str": str}.get(kind, object)
        if isinstance(value, wanted) and not (kind == "int" and isinstance(value, bool)):  # type: ignore[arg-type]
            return
        if kind == "Tensor" and not self._scripted and isinstance(value, (tuple, list, dict)):
            return
        inferred = kind == "Tensor" and parameter.annotation is parameter.empty and self._scripted
        said = (
            f"Inferred '{parameter.name}' to be of type 'Tensor' because it was not annotated with an explicit type.\n"
            if inferred
            else ""
        )
        cast = f"{value} to Tensor" if kind == "Tensor" else (
            f"Python instance of type {type(value)} to C++ type '?' (#define PYBIND11_DETAILED_ERROR_MESSAGES or "
            "compile in debug mode for details)"
        )  # fmt: skip
        raise RuntimeError(
            f"{self.name}() Expected a value of type '{kind}{' (inferred)' if inferred else ''}' for argument "
            f"'{parameter.name}' but instead found type '{type(value).__name__}'.\n{said}Position: {place}\n"
            f"Value: {value!r}\nDeclaration: {self.declaration}\nCast error details: Unable to cast {cast}"
        )

    @property
    def graph(self) -> Any:
        """The text of TorchScript's own representation, which is not here."""
        raise refusal("torch.jit.ScriptFunction", "graph")

    @property
    def code(self) -> str:
        """The code that TorchScript writes of a function, which is not here."""
        raise refusal("torch.jit.ScriptFunction", "code")

    def save(self, f: Any, _extra_files: Any = None) -> None:
        """Saved TorchScript is not here."""
        raise refusal("torch.jit", "save")

    def __repr__(self) -> str:
        return f"<torch.jit.ScriptFunction object at {id(self):#x}>"


class ScriptModule(Module):
    """The base class of scripted and traced modules; a subclass marks its methods with ``script_method``."""

    __module__ = "torch.jit._script"

    @property
    def original_name(self) -> str:
        """The name of the class that was compiled."""
        return type(self).__name__

    @property
    def graph(self) -> Any:
        """The text of TorchScript's own representation, which is not here."""
        raise refusal("torch.jit.ScriptModule", "graph")

    @property
    def code(self) -> str:
        """The code that TorchScript writes of a module, which is not here."""
        raise refusal("torch.jit.ScriptModule", "code")

    def save(self, f: Any, _extra_files: Any = None) -> None:
        """Saved TorchScript is not here."""
        raise refusal("torch.jit", "save")


class RecursiveScriptModule(ScriptModule):
    """A module that was scripted or traced: it shares the original's parameters, buffers and submodules."""

    __module__ = "torch.jit._script"

    def __init__(self, original: Module, run: Callable[..., Any] | None) -> None:
        super().__init__()
        state = self.__dict__
        state["_original"], state["_run"] = original, run
        state["_parameters"], state["_buffers"] = original._parameters, original._buffers
        state["_non_persistent_buffers_set"] = original._non_persistent_buffers_set
        children = {name: RecursiveScriptModule(m, None) for name, m in original._modules.items() if m is not None}
        state["_modules"] = children
        state["training"] = original.training

    @property
    def original_name(self) -> str:
        """The name of the class that was compiled."""
        return type(self.__dict__["_original"]).__name__

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the trace, or the module as it is written."""
        run = self.__dict__["_run"]
        if run is not None:
            return run(*args, **kwargs)
        with scripting():
            return self.__dict__["_original"](*args, **kwargs)

    def train(self, mode: bool = True) -> Any:
        """Switch the original, too: it is what runs."""
        self.__dict__["_original"].train(mode)
        return super().train(mode)

    def __getattr__(self, name: str) -> Any:
        for registry in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(registry, ()):
                return self.__dict__[registry][name]
        original = self.__dict__.get("_original")
        value: Any = getattr(original, name, _NOTHING)
        method = getattr(value, "__func__", None)
        if value is _NOTHING or (method is not None and not getattr(method, "_exported", False)):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        if method is None:
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            with scripting():
                return value(*args, **kwargs)

        return call

    def __setattr__(self, name: str, value: Any) -> None:
        original = self.__dict__.get("_original")
        if original is not None and name != "training":
            setattr(original, name, value)
        else:
            super().__setattr__(name, value)

    def extra_repr(self) -> str:
        """The name of the original's class."""
        return f"original_name={self.original_name}"

    def __len__(self) -> int:
        return len(self.__dict__["_modules"])

    def __iter__(self) -> Iterator[Module]:
        return iter(self.__dict__["_modules"].values())

    def __getitem__(self, key: Any) -> Any:
        modules = list(self.__dict__["_modules"].values())
        return modules[key] if isinstance(key, int) else self.__dict__["_modules"][key]

    def __bool__(self) -> bool:
        return True


def scripted_module(module: Module) -> RecursiveScriptModule:
    """The module with what TorchScript refuses checked in its ``forward`` and those below."""
    for part in module.modules():
        if not type(part).__module__.startswith("torch."):
            check(type(part).forward)
    return RecursiveScriptModule(module, None)
