"""The methods of a Module that add hooks to it, under PyTorch's names and with its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stridescope.engine.autograd.handle import RemovableHandle
from stridescope.engine.torch.nn.modules.calling import register

Hook = Callable[..., Any]


def register_forward_pre_hook(
    self: Any, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args)`` before forward; what it returns replaces the arguments."""
    return register(self, "_forward_pre_hooks", hook, prepend=prepend, with_kwargs=with_kwargs)


def register_forward_hook(
    self: Any, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after forward; with ``always_call`` also when forward failed."""
    return register(self, "_forward_hooks", hook, prepend=prepend, with_kwargs=with_kwargs, always_call=always_call)


def register_full_backward_pre_hook(self: Any, hook: Hook, prepend: bool = False) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` when the gradients of the outputs are known."""
    return register(self, "_backward_pre_hooks", hook, prepend=prepend)


def register_full_backward_hook(self: Any, hook: Hook, prepend: bool = False) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` when the gradients of the inputs are known."""
    return register(self, "_backward_hooks", hook, prepend=prepend)


def register_backward_hook(self: Any, hook: Hook) -> RemovableHandle:
    """The older form: the hook sees the gradients of the output's last node only."""
    return register(self, "_legacy_backward_hooks", hook)


def register_state_dict_pre_hook(self: Any, hook: Hook) -> RemovableHandle:
    """Call ``hook(module, prefix, keep_vars)`` before ``state_dict``."""
    return register(self, "_state_dict_pre_hooks", hook)


def register_state_dict_post_hook(self: Any, hook: Hook) -> RemovableHandle:
    """Call ``hook(module, state_dict, prefix, local_metadata)`` after ``state_dict``; it may not return anything."""
    hook._from_public_api = True  # type: ignore[attr-defined]  # PyTorch marks the hook itself
    return register(self, "_state_dict_hooks", hook)


def _register_state_dict_hook(self: Any, hook: Hook) -> RemovableHandle:
    return register(self, "_state_dict_hooks", hook)


def register_load_state_dict_pre_hook(self: Any, hook: Hook) -> RemovableHandle:
    """Call the hook with the module and the arguments of ``_load_from_state_dict`` before them."""
    return register(self, "_load_state_dict_pre_hooks", hook, with_module=True)


def _register_load_state_dict_pre_hook(self: Any, hook: Hook, with_module: bool = False) -> RemovableHandle:
    return register(self, "_load_state_dict_pre_hooks", hook, with_module=with_module)


def register_load_state_dict_post_hook(self: Any, hook: Hook) -> RemovableHandle:
    """Call ``hook(module, incompatible_keys)`` after ``load_state_dict``."""
    return register(self, "_load_state_dict_post_hooks", hook)


METHODS = (
    register_forward_pre_hook, register_forward_hook, register_full_backward_pre_hook, register_full_backward_hook,
    register_backward_hook, register_state_dict_pre_hook, register_state_dict_post_hook, _register_state_dict_hook,
    register_load_state_dict_pre_hook, _register_load_state_dict_pre_hook, register_load_state_dict_post_hook,
)  # fmt: skip
