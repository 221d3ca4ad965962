"""``torch.nn.utils.parametrize``: parameters that are computed from others."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

from stridescope.engine.autograd.modes import no_grad
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn.modules.container import ModuleDict, ModuleList
from stridescope.engine.torch.nn.modules.module import Module
from stridescope.engine.torch.nn.parameter import Parameter


class _Cache:
    """Values that were computed already, while ``cached()`` is open."""

    depth = 0
    values: dict[tuple[int, str], Tensor] = {}


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Compute every parametrized tensor once while this is open."""
    _Cache.depth += 1
    try:
        yield
    finally:
        _Cache.depth -= 1
        if not _Cache.depth:
            _Cache.values.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and the tensors that they start from."""

    def __init__(self, modules: Any, original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        start: Any = original
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with contextlib.suppress(NotImplementedError):
                        start = module.right_inverse(start)
        self.is_tensor = isinstance(start, Tensor)
        self.ntensors = 1 if self.is_tensor else len(start)
        if self.is_tensor:
            self._keep("original", start, original)
        else:
            for place, part in enumerate(start):
                self._keep(f"original{place}", part, original)
        if not unsafe:
            self._check(original)

    def _keep(self, name: str, value: Tensor, original: Tensor) -> None:
        if isinstance(original, Parameter):
            kept = original if value is original else Parameter(value, original.requires_grad)
            self.register_parameter(name, kept)
        else:
            self.register_buffer(name, value)

    def _check(self, original: Tensor) -> None:
        with no_grad():
            made = self()
        if not isinstance(made, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(made).__name__}.")
        for name, got, wanted in (("dtype", made.dtype, original.dtype), ("shape", made.shape, original.shape)):
            if got != wanted:
                raise ValueError(
                    f"Registering a parametrization may not change the {name} of the tensor, unless `unsafe` flag is "
                    f"enabled.\nunparametrized {name}: {wanted}\nparametrized {name}: {got}"
                )

    def right_inverse(self, value: Tensor) -> None:
        """Set the original tensors so that the parametrized one becomes ``value``."""
        start: Any = value
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                start = module.right_inverse(start)
            targets = (
                [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]
            )
            for target, part in zip(targets, [start] if self.is_tensor else start, strict=True):
                target.set_(part) if target.shape != part.shape else target.copy_(part)

    def forward(self) -> Tensor:
        """Compute the tensor."""
        modules = list(self)
        if self.is_tensor:
            value = modules[0](self.original)
        else:
            value = modules[0](*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for module in modules[1:]:
            value = module(value)
        return value  # type: ignore[no-any-return]


def _property(name: str) -> property:
    def get(self: Any) -> Any:
        parts = self.parametrizations[name]
        if not _Cache.depth:
            return parts()
        key = (id(self), name)
        if key not in _Cache.values:
            _Cache.values[key] = parts()
        return _Cache.values[key]

    def put(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, put)


def _own_class(module: Module) -> None:
    """Give the module a class of its own, to which properties can be added."""
    kind = type(module)
    own = type(f"Parametrized{kind.__name__}", (kind,), {"__deepcopy__": _deepcopy, "__reduce_ex__": _no_pickle})
    own.__module__ = kind.__module__
    module.__class__ = own


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    replica = self.__new__(self.__class__)
    memo[id(self)] = replica
    replica.__dict__ = copy.deepcopy(self.__dict__, memo)
    return replica


def _no_pickle(self: Any, protocol: Any) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html#saving-loading-a-general-checkpoint-for-"
        "inference-and-or-resuming-training"
    )


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Let a parameter or buffer be computed by ``parametrization`` from its original."""
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        parts = module.parametrizations[tensor_name]
        parts.append(parametrization)
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    original = getattr(module, tensor_name)
    made = ParametrizationList([parametrization], original, unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _own_class(module)
        module.parametrizations = ModuleDict()
    setattr(type(module), tensor_name, _property(tensor_name))
    module.parametrizations[tensor_name] = made
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether the module has parametrizations, or one for this tensor."""
    found = module._modules.get("parametrizations")
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make the tensor a plain one again: with its computed value, or with its original."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parts = module.parametrizations[tensor_name]
    original = parts.original if parts.is_tensor else None
    if leave_parametrized:
        with no_grad():
            value = getattr(module, tensor_name).detach().clone()
        kept = [parts.original] if parts.is_tensor else [getattr(parts, f"original{i}") for i in range(parts.ntensors)]
        original = Parameter(value, kept[0].requires_grad) if isinstance(kept[0], Parameter) else value
    elif original is None:
        raise ValueError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in "
                         "terms "
                         "of a sequence of tensors.")  # fmt: skip
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    if isinstance(original, Parameter):
        module.register_parameter(tensor_name, original)
    else:
        module.register_buffer(tensor_name, original)
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that the module had before it was parametrized, or its class."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Give ``to_module`` the parametrizations of another, with their parameters; of one tensor or of all."""
    if not is_parametrized(from_module):
        return to_module
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        if not hasattr(to_module, name):
            setattr(to_module, name, getattr(from_module, name))
        for parametrization in from_module.parametrizations[name]:
            register_parametrization(to_module, name, parametrization)
        parts, given = to_module.parametrizations[name], from_module.parametrizations[name]
        if parts.is_tensor:
            parts.original = given.original
        else:
            for i in range(parts.ntensors):
                setattr(parts, f"original{i}", getattr(given, f"original{i}"))
    return to_module
