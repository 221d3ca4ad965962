"""``torch.nn.Module``: registries of parameters, buffers and submodules, hooks, and everything that walks them."""

from __future__ import annotations

import itertools
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from stridescope.engine.events import journal
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.__future__ import get_overwrite_module_params_on_conversion
from stridescope.engine.torch._not_yet import refusing
from stridescope.engine.torch.nn.modules import everywhere, registering
from stridescope.engine.torch.nn.modules.calling import HOOKS, call_module
from stridescope.engine.torch.nn.modules.conversion import clear_grad, parsed_target, renewed, replace_data
from stridescope.engine.torch.nn.modules.everywhere import HOOKS_ON_ALL, Registering, replaced
from stridescope.engine.torch.nn.modules.loading import load_into, saved_state
from stridescope.engine.torch.nn.modules.paths import METHODS
from stridescope.engine.torch.nn.modules.told import look, look_at_part, told_call
from stridescope.engine.torch.nn.parameter import Buffer, Parameter

REGISTRIES = ("_parameters", "_buffers", "_modules")


COMPLEX_MODULES = (
    "Complex modules are a new feature under active development whose design may change, and some modules might not "
    "work as expected when using complex tensors as parameters or buffers. Please file an issue at "
    "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml if a complex module does not work as "
    "expected."
)


class Module:
    """The base class of all networks.

    Assigning a Parameter, a Module or a Buffer to an attribute registers it; ``forward`` says what a call computes.
    """

    training: bool = True
    _version: int = 1
    dump_patches: bool = False
    call_super_init: bool = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs and not self.call_super_init:
            raise TypeError(
                f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
            )
        if args and not self.call_super_init:
            raise TypeError(
                f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
            )
        state = self.__dict__
        state["training"] = True
        state["_is_full_backward_hook"] = None
        for registry in REGISTRIES:
            state[registry] = {}
        state["_non_persistent_buffers_set"] = set()
        for hooks in HOOKS:
            state[hooks] = OrderedDict()
        look(self)

    def forward(self, *input: Any) -> Any:
        """What the module computes; a subclass defines it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the forward hooks around ``forward``; the recording is told of it."""
        if journal.emit is not None:
            return told_call(self, call_module, args, kwargs)
        return call_module(self, args, kwargs)

    _call_impl = _wrapped_call_impl = __call__

    # ---- attributes ----------------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        if isinstance(value, Parameter):
            self._needs_init(name, "parameters")
            _forget(self, name, "_parameters")
            self.register_parameter(name, value)
        elif state.get("_parameters") is not None and name in state["_parameters"]:
            if value is not None:
                raise TypeError(f"cannot assign '{_typename(value)}' as parameter '{name}' "
                                "(torch.nn.Parameter or None expected)")  # fmt: skip
            self.register_parameter(name, None)
        elif isinstance(value, Module):
            self._needs_init(name, "modules")
            _forget(self, name, "_modules")
            state["_modules"][name] = replaced(Registering.modules, self, name, value)
            look_at_part(self, name)
        elif state.get("_modules") is not None and name in state["_modules"]:
            if value is not None:
                raise TypeError(f"cannot assign '{_typename(value)}' as child module '{name}' "
                                "(torch.nn.Module or None expected)")  # fmt: skip
            state["_modules"][name] = None
            look_at_part(self, name)
        else:
            self._set_buffer_or_plain(name, value)

    def _set_buffer_or_plain(self, name: str, value: Any) -> None:
        buffers = self.__dict__.get("_buffers")
        if isinstance(value, Buffer):
            _forget(self, name, "_buffers")
            self.register_buffer(name, value, value.persistent)
        elif buffers is not None and name in buffers:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"cannot assign '{_typename(value)}' as buffer '{name}' "
                                "(torch.nn.Buffer, torch.Tensor or None expected)")  # fmt: skip
            buffers[name] = value
            look_at_part(self, name)
        else:
            object.__setattr__(self, name, value)
            if name == "training":
                look(self)

    def _needs_init(self, name: str, what: str) -> None:
        if f"_{what}" not in self.__dict__:
            raise AttributeError(
                f"cannot assign {what[:-1] if what == 'modules' else what} before Module.__init__() call"
            )

    def __getattr__(self, name: str) -> Any:
        for registry in REGISTRIES:
            found = self.__dict__.get(registry)
            if found is not None and name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for registry in REGISTRIES:
            if name in self.__dict__.get(registry, ()):
                del self.__dict__[registry][name]
                self._non_persistent_buffers_set.discard(name)
                look_at_part(self, name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = [*dir(type(self)), *self.__dict__]
        for registry in REGISTRIES:
            names.extend(self.__dict__.get(registry, ()))
        return sorted(n for n in names if not n[:1].isdigit())

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for hooks in HOOKS:
            self.__dict__.setdefault(hooks, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())

    # ---- registering ---------------------------------------------------------------------------------------------

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Register a parameter (or None); raises for a bad name or a tensor with history."""
        self._needs_init(name, "parameters")
        self._check_name(name, "parameter", "_parameters")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"cannot assign '{_typename(param)}' object to parameter '{name}' "
                            "(torch.nn.Parameter or None required)")  # fmt: skip
        if param is not None and param.grad_fn is not None:
            raise ValueError(f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                             f"explicitly. To express '{name}' as a function of another Tensor, compute the value in "
                             "the forward() method.")  # fmt: skip
        if param is not None and Registering.parameters:
            param = replaced(Registering.parameters, self, name, param)
        self.__dict__["_parameters"][name] = param
        look_at_part(self, name)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a buffer; a persistent one is part of ``state_dict``."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name(name, "buffer", "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{_typename(tensor)}' object to buffer '{name}' "
                            "(torch Tensor or None required)")  # fmt: skip
        if tensor is not None and Registering.buffers:
            tensor = replaced(Registering.buffers, self, name, tensor)
        self.__dict__["_buffers"][name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)
        look_at_part(self, name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Register a submodule under a name."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{_typename(module)} is not a Module subclass")
        self._check_name(name, "module", "_modules")
        if module is not None and Registering.modules:
            module = replaced(Registering.modules, self, name, module)
        self.__dict__["_modules"][name] = module
        look_at_part(self, name)

    register_module = add_module

    def _check_name(self, name: Any, kind: str, registry: str) -> None:
        label = "module" if kind == "module" else kind
        if not isinstance(name, str):
            shown = f"{kind} name should be a string. Got {_typename(name)}"
            raise TypeError(shown)
        if hasattr(self, name) and name not in self.__dict__[registry]:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'{label} name can\'t contain ".", got: {name}' if kind == "module"
                           else f'{label} name can\'t contain "."')  # fmt: skip
        if name == "":
            raise KeyError(f'{label} name can\'t be empty string ""')

    # ---- walking -------------------------------------------------------------------------------------------------

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with dotted names, each module once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                below = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, below, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below it."""
        return (module for _, module in self.named_modules(remove_duplicate=remove_duplicate))

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct submodules with their names, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The direct submodules."""
        return (module for _, module in self.named_children())

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for at, module in modules:
            for name, value in get_members_fn(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield (f"{at}.{name}" if at else name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters with dotted names, shared ones once."""
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """All buffers with dotted names."""
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    # ---- changing all --------------------------------------------------------------------------------------------

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Call ``fn`` on every submodule, children first, then on this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the data of all parameters, their gradients and all buffers by ``fn`` of them."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is not None and get_overwrite_module_params_on_conversion():
                self._parameters[name] = renewed(parameter, fn)
            elif parameter is not None:
                replace_data(parameter, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
                look_at_part(self, name)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move and cast: ``to(device)``, ``to(dtype)``, ``to(tensor)``; integer tensors keep their dtype."""
        device, dtype, non_blocking, memory_format = parsed_target(args, kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )
        if dtype is not None and dtype.is_complex:
            warnings.warn(COMPLEX_MODULES, stacklevel=2)

        def moved(tensor: Tensor) -> Tensor:
            kind = dtype if tensor.is_floating_point() or tensor.is_complex() else None
            if tensor.is_meta and device is not None and device.type != "meta":
                raise NotImplementedError(
                    "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
                    "torch.nn.Module.to() when moving module from meta to a different device."
                )
            named = {"memory_format": memory_format} if memory_format is not None and tensor.dim() in (4, 5) else {}
            return tensor.to(device or tensor.device, kind or tensor.dtype, non_blocking, **named)  # type: ignore[no-any-return]

        return self._apply(moved)

    def cpu(self) -> Self:
        """Move all to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Self:
        """Move all to a cuda device."""
        return self._apply(lambda t: t.cuda(device))

    def type(self, dst_type: Any) -> Self:
        """Cast all to a dtype."""
        return self._apply(lambda t: t.type(dst_type))

    def _cast(self, dtype: Any) -> Self:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self) -> Self:
        """Cast floating tensors to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Self:
        """Cast floating tensors to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Self:
        """Cast floating tensors to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Self:
        """Cast floating tensors to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move to a device without copying values."""
        return self._apply(lambda t: t.new_empty(t.shape, device=device), recurse)

    def share_memory(self) -> Self:
        """Accepted for compatibility: worker processes copy."""
        for tensor in itertools.chain(self.parameters(), self.buffers()):
            tensor.share_memory_()
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Not here: raises NotImplementedError."""
        refusing("torch", "compile")()

    def train(self, mode: bool = True) -> Self:
        """Switch this module and all below to training mode, or to evaluation."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Switch to evaluation: ``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Let all parameters require grad, or not."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or zero them."""
        for parameter in self.parameters():
            clear_grad(parameter, set_to_none)

    # ---- saving --------------------------------------------------------------------------------------------------

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """All parameters and persistent buffers by dotted name."""
        if args:
            warnings.warn("Positional args are being deprecated, use kwargs instead. Refer to "
                          "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for "
                          "details.", FutureWarning, stacklevel=2)  # fmt: skip
            destination, prefix, keep_vars = (*args, *(destination, prefix, keep_vars)[len(args) :])[:3]
        return saved_state(self, destination, prefix, keep_vars, Module.state_dict)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Copy (or with ``assign`` take over) the values; raises RuntimeError that lists what does not fit."""
        return load_into(self, state_dict, strict, assign)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, value in itertools.chain(self._parameters.items(), self._buffers.items()):
            if value is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not Module.get_extra_state:
            destination[f"{prefix}_extra_state"] = self.get_extra_state()

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        from stridescope.engine.torch.nn.modules.loading import load_own

        load_own(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def get_extra_state(self) -> Any:
        """What else ``state_dict`` shall hold; a subclass may define it."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        """Take back what ``get_extra_state`` gave."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    # ---- printing ------------------------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What the printed form says of this module beside its children."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()]
        if lines and not children and len(lines) == 1:
            return f"{self._get_name()}({lines[0]})"
        body = "".join(f"\n  {line}" for line in [*lines, *children])
        return f"{self._get_name()}({body}\n)" if body else f"{self._get_name()}()"


def _addindent(s_: str, numSpaces: int) -> str:
    first, *rest = s_.split("\n")
    return "\n".join([first, *(" " * numSpaces + line for line in rest)])


def _forget(module: Module, name: str, but: str) -> None:
    """Take the name out of every place where it stood, before it becomes something else."""
    module.__dict__.pop(name, None)
    for registry in REGISTRIES:
        if registry != but and name in module.__dict__.get(registry, ()):
            del module.__dict__[registry][name]
    module.__dict__.get("_non_persistent_buffers_set", set()).discard(name)


def _typename(value: Any) -> str:
    kind = type(value)
    if isinstance(value, Tensor):
        return f"torch.{kind.__name__}" if kind is not Tensor else f"torch.{value.type().removeprefix('torch.')}"
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


Module.forward.__qualname__ = "_forward_unimplemented"
for _register in registering.METHODS:
    _register.__qualname__ = f"Module.{_register.__name__}"
    setattr(Module, _register.__name__, _register)
for _name, _function in METHODS.items():
    setattr(Module, _name, _function)
for _hook in HOOKS_ON_ALL:
    globals()[_hook.__name__] = _hook
register_module_backward_hook = everywhere.register_module_backward_hook
Module.__module__ = "torch.nn.modules.module"
