"""What happens around ``forward``: pre-hooks, hooks, and the hooks of a module's backward."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stridescope.engine.announce import tensor_id
from stridescope.engine.autograd.function import Function
from stridescope.engine.autograd.handle import RemovableHandle
from stridescope.engine.events import HookRan, journal
from stridescope.engine.tensor import Tensor

if TYPE_CHECKING:
    from stridescope.engine.torch.nn.modules.module import Module

# The hook dictionaries of a module, in the order in which PyTorch lists them.
HOOKS = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_legacy_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


class Everywhere:
    """The hooks that run around every module (``torch.nn.modules.module.register_module_forward_hook`` and so on)."""

    forward_pre: OrderedDict[int, Callable[..., Any]] = OrderedDict()
    forward: OrderedDict[int, Callable[..., Any]] = OrderedDict()
    forward_with_kwargs: OrderedDict[int, bool] = OrderedDict()
    forward_always: OrderedDict[int, bool] = OrderedDict()
    backward_pre: OrderedDict[int, Callable[..., Any]] = OrderedDict()
    backward: OrderedDict[int, Callable[..., Any]] = OrderedDict()


def register(
    module: Module,
    kind: str,
    hook: Callable[..., Any],
    *,
    prepend: bool = False,
    with_kwargs: bool = False,
    always_call: bool = False,
    with_module: bool = False,
) -> RemovableHandle:
    """Add a hook to a module's dictionary; ``prepend`` puts it before the others."""
    _check_kind(module, kind)
    hooks = module.__dict__[kind]
    extra = [module.__dict__[f"{kind}_with_kwargs"]] if f"{kind}_with_kwargs" in module.__dict__ else []
    if always_call:
        extra.append(module.__dict__["_forward_hooks_always_called"])
    handle = RemovableHandle(hooks, extra_dict=extra or None)
    hooks[handle.id] = _with_module(hook, module) if with_module else hook
    if with_kwargs:
        module.__dict__[f"{kind}_with_kwargs"][handle.id] = True
    if always_call:
        module.__dict__["_forward_hooks_always_called"][handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def _check_kind(module: Module, kind: str) -> None:
    """A module has full backward hooks or old ones, not both."""
    if kind in ("_backward_hooks", "_legacy_backward_hooks"):
        full = kind == "_backward_hooks"
        if module.__dict__.get("_is_full_backward_hook") is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only "
                "one "
                "of them."
            )
        module.__dict__["_is_full_backward_hook"] = full


def _with_module(hook: Callable[..., Any], module: Module) -> Callable[..., Any]:
    return lambda *args: hook(module, *args)


def call_module(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``module(*args, **kwargs)``."""
    state = module.__dict__
    plain = not (
        state["_forward_pre_hooks"] or state["_forward_hooks"] or state["_backward_hooks"]
        or state["_backward_pre_hooks"] or state["_legacy_backward_hooks"] or Everywhere.forward_pre
        or Everywhere.forward or Everywhere.backward or Everywhere.backward_pre
    )  # fmt: skip
    if plain:
        return module.forward(*args, **kwargs)
    called: set[int] = set()
    try:
        return _hooked(module, args, kwargs, called)
    except Exception:
        _call_always(module, args, kwargs, called)
        raise


def _hooked(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], called: set[int]) -> Any:
    args, kwargs = _pre_hooks(module, args, kwargs)
    pre = [*Everywhere.backward_pre.values(), *module._backward_pre_hooks.values()]
    post = [*Everywhere.backward.values(), *module._backward_hooks.values()]
    watcher = BackwardWatcher(module, post, pre) if pre or post else None
    if watcher is not None:
        args = watcher.watch_inputs(args)
    result = module.forward(*args, **kwargs)
    result = _post_hooks(module, args, kwargs, result, called)
    if watcher is not None:
        result = watcher.watch_outputs(result)
    if module._legacy_backward_hooks:
        _watch_legacy(module, result)
    return result


def _pre_hooks(module: Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    own = module._forward_pre_hooks
    for key, hook in (*Everywhere.forward_pre.items(), *own.items()):
        if key in own and key in module._forward_pre_hooks_with_kwargs:
            changed = hook(module, args, kwargs)
            if changed is not None:
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError("forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                                       f"but got {changed}.")  # fmt: skip
                args, kwargs = changed
        else:
            changed = hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        _tell("forward pre-hook", module)
    return args, kwargs


def _post_hooks(module: Module, args: Any, kwargs: dict[str, Any], result: Any, called: set[int]) -> Any:
    own = module._forward_hooks
    for key, hook in (*Everywhere.forward.items(), *own.items()):
        if key in module._forward_hooks_always_called or key in Everywhere.forward_always:
            called.add(key)
        with_kwargs = key in Everywhere.forward_with_kwargs or (key in own and key in module._forward_hooks_with_kwargs)
        changed = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
        _tell("forward hook", module, result)
        if changed is not None:
            result = changed
    return result


def _tell(kind: str, module: Module, result: Any = None) -> None:
    """Say that a hook of a module ran, and what it was shown."""
    if (emit := journal.emit) is not None:
        shown = tensor_id(result) if isinstance(result, Tensor) else 0
        emit((HookRan.code, f"{kind} of {type(module).__name__}", 0, shown))


def _call_always(module: Module, args: Any, kwargs: dict[str, Any], called: set[int]) -> None:
    """After an exception: the hooks with ``always_call`` that did not run yet; their own errors become warnings."""
    for key in (*Everywhere.forward_always, *module._forward_hooks_always_called):
        if key in called:
            continue
        hook = module._forward_hooks.get(key) or Everywhere.forward[key]
        try:
            if key in module._forward_hooks_with_kwargs or key in Everywhere.forward_with_kwargs:
                hook(module, args, kwargs, None)
            else:
                hook(module, args, None)
        except Exception as error:
            warnings.warn("module forward hook with ``always_call=True`` raised an exception that was silenced as "
                          f"another error was raised in forward: {error}", stacklevel=3)  # fmt: skip


class BackwardHookFunction(Function):
    """Passes tensors through, so that a module's inputs or outputs get one node that hooks can stand on."""

    @staticmethod
    def forward(ctx: Any, *args: Tensor) -> Any:
        """Return aliases of the inputs."""
        ctx.mark_non_differentiable(*(a for a in args if not a.requires_grad))
        return args

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Any:
        """Pass the gradients on."""
        return args


class BackwardWatcher:
    """Calls a module's full backward hooks with the gradients of its inputs and outputs."""

    def __init__(self, module: Module, hooks: list[Callable[..., Any]], pre_hooks: list[Callable[..., Any]]) -> None:
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.grad_outputs: Any = None
        self.inputs_count: int | None = None
        self.input_places: list[int] = []
        self.output_places: list[int] = []
        self.outputs_count = 0

    def _through(self, values: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[int], Any]:
        """Send the tensors among ``values`` through one node; returns the values, the places and the node."""
        places = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
        tensors = [values[i] for i in places]
        if not any(t.requires_grad for t in tensors):
            return values, places, None
        passed = BackwardHookFunction.apply(*tensors)
        passed = passed if isinstance(passed, tuple) else (passed,)
        node = next(t.grad_fn for t in passed if t.grad_fn is not None)
        changed = list(values)
        for place, tensor in zip(places, passed, strict=True):
            changed[place] = tensor
        return tuple(changed), places, node

    def watch_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Put a node behind the inputs; it runs when their gradients are there."""
        args, self.input_places, node = self._through(args)
        if node is not None:
            self.inputs_count = len(args)
            node.register_hook(self._inputs_done)
        return args

    def _spread(self, gradients: tuple[Any, ...], places: list[int], count: int) -> tuple[Any, ...]:
        full: list[Any] = [None] * count
        for place, gradient in zip(places, gradients, strict=False):
            full[place] = gradient
        return tuple(full)

    def _inputs_done(self, grad_inputs: tuple[Any, ...], _: Any) -> Any:
        if self.grad_outputs is None:
            return None  # the outputs never got a gradient
        shown = self._spread(grad_inputs, self.input_places, self.inputs_count or 0)
        for hook in self.hooks:
            changed = hook(self.module, shown, self.grad_outputs)
            if changed is not None:
                shown = self._checked(changed, shown)
        self.grad_outputs = None
        return tuple(shown[place] for place in self.input_places)

    def _checked(self, changed: Any, shown: tuple[Any, ...]) -> tuple[Any, ...]:
        changed = changed if isinstance(changed, tuple) else (changed,)
        if len(changed) != len(shown):
            raise RuntimeError("Backward hook returned an invalid number of grad_input, "
                               f"got {len(changed)}, but expected {len(shown)}")  # fmt: skip
        return changed  # type: ignore[no-any-return]

    def watch_outputs(self, result: Any) -> Any:
        """Put a node behind the outputs; it sees their gradients first."""
        values = result if isinstance(result, tuple) else (result,)
        values, self.output_places, node = self._through(values)
        self.outputs_count = len(values)
        if node is not None:
            node.register_prehook(self._outputs_arrived)
        return values if isinstance(result, tuple) else values[0]

    def _outputs_arrived(self, gradients: tuple[Any, ...]) -> Any:
        shown = self._spread(gradients, self.output_places, self.outputs_count)
        for hook in self.pre_hooks:
            changed = hook(self.module, shown)
            if changed is not None:
                shown = changed if isinstance(changed, tuple) else (changed,)
        self.grad_outputs = shown
        if self.inputs_count is None:  # no input requires grad: the hooks run here
            self._without_inputs()
        return tuple(shown[place] for place in self.output_places)

    def _without_inputs(self) -> None:
        for hook in self.hooks:
            changed = hook(self.module, tuple([None] * len(self.input_places)), self.grad_outputs)
            if changed is not None and not (isinstance(changed, tuple) and all(c is None for c in changed)):
                raise RuntimeError("Backward hook for Modules where no input requires gradient should always return "
                                   "None or None for all gradients.")  # fmt: skip
        self.grad_outputs = None


def _watch_legacy(module: Module, result: Any) -> None:
    """``register_backward_hook``: on the node of the output, whatever its inputs are."""
    output = result
    while not isinstance(output, Tensor):
        output = next(v for v in output.values() if isinstance(v, Tensor)) if isinstance(output, dict) else output[0]
    node = output.grad_fn
    if node is not None:
        for hook in module._legacy_backward_hooks.values():
            node.register_hook(lambda gi, go, hook=hook: hook(module, gi, go))
