"""``state_dict`` and ``load_state_dict``: what a module saves, and how it takes it back."""

from __future__ import annotations

import itertools
from collections import OrderedDict, namedtuple
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn.parameter import Parameter
from stridescope.engine.torch.nn.uninitialized import is_lazy

if TYPE_CHECKING:
    from stridescope.engine.torch.nn.modules.module import Module

EXTRA_STATE = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What ``load_state_dict`` returns."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def saved_state(module: Module, destination: Any, prefix: str, keep_vars: bool, own: Any) -> Any:
    """Fill ``destination`` (made when None) with everything below ``module``, and its versions as metadata.

    Children whose ``state_dict`` is another than ``own`` are asked by it.
    """
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()
    metadata: dict[str, Any] = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = metadata
    for hook in module._state_dict_pre_hooks.values():
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            below = f"{prefix}{name}."
            if own is getattr(child.state_dict, "__func__", None):  # as its method would, with fewer frames
                saved_state(child, destination, below, keep_vars, own)
            else:
                child.state_dict(destination=destination, prefix=below, keep_vars=keep_vars)
    for hook in module._state_dict_hooks.values():
        changed = hook(module, destination, prefix, metadata)
        if changed is not None:
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = changed
    return destination


class _Loading:
    """One call of ``load_state_dict``: what was missing, unexpected or wrong."""

    def __init__(self, state_dict: Any, strict: bool, assign: bool) -> None:
        self.metadata = getattr(state_dict, "_metadata", None)
        self.state = OrderedDict(state_dict)
        if self.metadata is not None:
            self.state._metadata = self.metadata  # type: ignore[attr-defined]
        self.strict, self.assign = strict, assign
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.errors: list[str] = []

    def load(self, module: Module, state: Any, prefix: str = "") -> None:
        """Load a module and everything below it."""
        metadata = {} if self.metadata is None else self.metadata.get(prefix[:-1], {})
        if self.assign:
            metadata["assign_to_params_buffers"] = True
        module._load_from_state_dict(state, prefix, metadata, True, self.missing, self.unexpected, self.errors)
        for name, child in module._modules.items():
            if child is not None:
                below = f"{prefix}{name}."
                self.load(child, {k: v for k, v in state.items() if k.startswith(below)}, below)
        incompatible = _IncompatibleKeys(self.missing, self.unexpected)
        for hook in module._load_state_dict_post_hooks.values():
            if hook(module, incompatible) is not None:
                raise AssertionError("Hooks registered with ``register_load_state_dict_post_hook`` are not expected to "
                                     "return new values, if incompatible_keys need to be modified, it should be done "
                                     "inplace.")  # fmt: skip


def load_into(module: Module, state_dict: Any, strict: bool, assign: bool) -> _IncompatibleKeys:
    """``module.load_state_dict``."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    loading = _Loading(state_dict, strict, assign)
    loading.load(module, loading.state)
    if strict:
        for label, keys in (("Unexpected", loading.unexpected), ("Missing", loading.missing)):
            if keys:
                listed = ", ".join(f'"{key}"' for key in keys)
                loading.errors.insert(0, f"{label} key(s) in state_dict: {listed}. ")
    if loading.errors:
        text = "\n\t".join(loading.errors)
        raise RuntimeError(f"Error(s) in loading state_dict for {type(module).__name__}:\n\t{text}")
    return _IncompatibleKeys(loading.missing, loading.unexpected)


def load_own(
    module: Module,
    state: Any,
    prefix: str,
    metadata: Any,
    strict: bool,
    missing: list[str],
    unexpected: list[str],
    errors: list[str],
) -> None:
    """Load a module's own parameters and buffers; children load themselves."""
    for hook in module._load_state_dict_pre_hooks.values():
        hook(state, prefix, metadata, strict, missing, unexpected, errors)
    own = {
        name: value
        for name, value in itertools.chain(module._parameters.items(), module._buffers.items())
        if value is not None and name not in module._non_persistent_buffers_set
    }
    for name, value in own.items():
        key = prefix + name
        if key in state:
            _take(module, name, key, value, state[key], metadata, errors)
        elif strict:
            missing.append(key)
    _extra_state(module, state, prefix, strict, missing, unexpected)
    if strict:
        for key in state:
            if key.startswith(prefix) and key != prefix + EXTRA_STATE:
                head, *below = key[len(prefix) :].split(".", 1)
                if (below and head not in module._modules) or (not below and head not in own):
                    unexpected.append(key)


def _extra_state(
    module: Module, state: Any, prefix: str, strict: bool, missing: list[str], unexpected: list[str]
) -> None:
    from stridescope.engine.torch.nn.modules.module import Module

    key = prefix + EXTRA_STATE
    if type(module).set_extra_state is not Module.set_extra_state:
        if key in state:
            module.set_extra_state(state[key])
        elif strict:
            missing.append(key)
    elif strict and key in state:
        unexpected.append(key)


def _take(module: Module, name: str, key: str, value: Any, given: Any, metadata: Any, errors: list[str]) -> None:
    if not isinstance(given, Tensor):
        errors.append(
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint '
            f"but received {type(given)}"
        )
        return
    if is_lazy(value):  # nothing is known of it, and what was given is as unknown
        return
    if value.dim() == 0 and given.dim() == 1 and given.numel() == 1:
        given = given[0]
    if given.shape != value.shape:
        errors.append(
            f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the shape in current "
            f"model is {value.shape}."
        )
        return
    before, grad_mode.enabled = grad_mode.enabled, False
    try:
        _store(module, name, value, given, bool(metadata.get("assign_to_params_buffers", False)))
    except Exception as error:
        errors.append(
            f'While copying the parameter named "{key}", whose dimensions in the model are {value.size()} and whose '
            f"dimensions in the checkpoint are {given.size()}, an exception occurred : {error.args}."
        )
    finally:
        grad_mode.enabled = before


def _store(module: Module, name: str, value: Any, given: Tensor, assign: bool) -> None:
    if not assign:
        value.copy_(given)
    elif isinstance(value, Parameter):
        taken = given if isinstance(given, Parameter) else Parameter(given, value.requires_grad)
        setattr(module, name, taken.requires_grad_(value.requires_grad))
    else:
        setattr(module, name, given)
