"""``torch.optim.Optimizer``: parameter groups, state, hooks, and how they are saved and loaded."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from stridescope.engine.autograd.handle import RemovableHandle
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.autograd._collector import labelled
from stridescope.engine.torch.optim import saved_state

Hooks = OrderedDict[int, Callable[..., Any]]
_HOOKS = tuple(
    f"_optimizer_{when}_hooks"
    for when in (
        "step_pre", "step_post", "state_dict_pre", "state_dict_post", "load_state_dict_pre", "load_state_dict_post",
    )
)  # fmt: skip
_global_pre_hooks: Hooks = OrderedDict()
_global_post_hooks: Hooks = OrderedDict()


class _RequiredParameter:
    """The default of an option that each parameter group must name."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def typename(value: Any) -> str:
    """``torch.typename``: a tensor's type, or the full name of a value's class."""
    if isinstance(value, Tensor):
        return str(value.type())
    kind = value if isinstance(value, type) else type(value)
    module = "" if kind.__module__ in ("builtins", "__builtin__", None) else kind.__module__ + "."
    return f"{module}{kind.__qualname__}"


class Optimizer:
    """Changes parameters by their gradients; subclasses say how, in ``step``.

    Raises TypeError when ``params`` is no collection of tensors or groups, and ValueError when it is empty.
    """

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        for name in _HOOKS:
            setattr(self, name, OrderedDict())
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + typename(params)
            )
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        self._patch_step_function()
        for group in self.param_groups:
            for option, value in self.defaults.items():
                group.setdefault(option, value)

    def __repr__(self) -> str:
        parts = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            parts.append(f"\nParameter Group {number}\n")
            parts += [f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params"]
        return "".join(parts) + ")"

    def _patch_step_function(self) -> None:
        """Let the class's ``step`` run the hooks around it."""
        kind: Any = type(self)
        if not getattr(kind.step, "hooked", False):
            kind.step = self.profile_hook_step(kind.step)
            kind.step.hooked = True

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """``func`` with the step hooks run before and after it."""

        @functools.wraps(func)
        @labelled(lambda self: f"Optimizer.step#{type(self).__name__}.step")
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            self = args[0]
            for hook in chain(_global_pre_hooks.values(), self._optimizer_step_pre_hooks.values()):
                args, kwargs = _taken(func, hook(self, args, kwargs), args, kwargs)
            out = func(*args, **kwargs)
            for hook in chain(self._optimizer_step_post_hooks.values(), _global_post_hooks.values()):
                hook(self, args, kwargs)
            return out

        return wrapper

    def _register(self, name: str, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        hooks: Hooks = getattr(self, f"_optimizer_{name}_hooks")
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        return handle

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return other (args, kwargs)."""
        return self._register("step_pre", hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return self._register("step_post", hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` before ``state_dict``."""
        return self._register("state_dict_pre", hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` after ``state_dict``; it may return another one."""
        return self._register("state_dict_post", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before loading; it may return another one."""
        return self._register("load_state_dict_pre", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` after loading."""
        return self._register("load_state_dict_post", hook, prepend)

    def state_dict(self) -> dict[str, Any]:
        """State and parameter groups, with numbers in the place of the parameters."""
        hooks: Any = self
        for before in hooks._optimizer_state_dict_pre_hooks.values():
            before(self)
        packed = saved_state.pack(self.param_groups, self.state)
        for after in hooks._optimizer_state_dict_post_hooks.values():
            changed = after(self, packed)
            packed = packed if changed is None else changed
        return packed

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over state and options; raises ValueError when the groups don't match."""
        hooks: Any = self
        state_dict = state_dict.copy()
        for before in hooks._optimizer_load_state_dict_pre_hooks.values():
            changed = before(self, state_dict)
            state_dict = state_dict if changed is None else changed
        self.__setstate__(saved_state.unpack(self.param_groups, state_dict))
        for after in hooks._optimizer_load_state_dict_post_hooks.values():
            after(self)

    @labelled(lambda self: f"Optimizer.zero_grad#{type(self).__name__}.zero_grad")
    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or fill them with zeros."""
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is not None:
                    if set_to_none:
                        param.grad = None
                    else:
                        _zeroed(param.grad)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters once; subclasses define how."""
        raise NotImplementedError

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Optimize more parameters, with options of their own.

        Raises TypeError or ValueError when the group is no dict, holds no leaf tensors, lacks a required option or
        shares a parameter with another group.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        _name_parameters(param_group)
        for param in param_group["params"]:
            self._check_parameter(param)
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        self._check_overlap(param_group)
        self.param_groups.append(param_group)

    def _check_parameter(self, param: Any) -> None:
        if not isinstance(param, Tensor):
            raise TypeError("optimizer can only optimize Tensors, but one of the params is " + typename(param))
        if not self.defaults.get("differentiable", None) and not (param.is_leaf or param.retains_grad):
            raise ValueError("can't optimize a non-leaf Tensor")

    def _check_overlap(self, param_group: dict[str, Any]) -> None:
        own = set(param_group["params"])
        if len(own) != len(param_group["params"]):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=4,
            )
        named = "param_names" in param_group
        if any(named != ("param_names" in group) for group in self.param_groups):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{'with names' if named else 'without names'} to the optimizer"
            )
        if any(not own.isdisjoint(group["params"]) for group in self.param_groups):
            raise ValueError("some parameters appear in more than one parameter group")


def _taken(func: Any, given: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments after a pre hook returned ``given``."""
    if given is None:
        return args, kwargs
    if isinstance(given, tuple) and len(given) == 2:
        return given
    raise RuntimeError(f"{func} must return None or a tuple of (new_args, new_kwargs), but got {given}.")


def _zeroed(grad: Tensor) -> None:
    if grad.grad_fn is not None:
        grad.detach_()
    else:
        grad.requires_grad_(False)
    grad.zero_()


def _name_parameters(group: dict[str, Any]) -> None:
    """Make ``params`` a list, and ``param_names`` another one when the parameters came with names."""
    params = group["params"]
    if isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs. Please use a list instead."
        )
    given = [params] if isinstance(params, Tensor) else list(params)
    names = [item[0] for item in given if isinstance(item, tuple)]
    group["params"] = [item[1] if isinstance(item, tuple) else item for item in given]
    if names:
        if len(names) != len(given):
            raise ValueError("all optimizer params should be with/without names. Some param names are missing")
        group["param_names"] = names


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before every optimizer's step."""
    handle = RemovableHandle(_global_pre_hooks)
    _global_pre_hooks[handle.id] = hook
    return handle


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after every optimizer's step."""
    handle = RemovableHandle(_global_post_hooks)
    _global_post_hooks[handle.id] = hook
    return handle
