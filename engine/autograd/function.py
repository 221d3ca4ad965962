"""``torch.autograd.Function``: ops whose backward the user writes."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable
from typing import Any

from stridescope.engine.autograd.blank import zeros
from stridescope.engine.autograd.edges import gradient_edge
from stridescope.engine.autograd.modes import ForwardMode, grad_mode, transforms
from stridescope.engine.autograd.node import LAST, Gradients, Node, set_history
from stridescope.engine.autograd.saved import FREED, SavedTensor, record_saved
from stridescope.engine.autograd.wrap import Outputs
from stridescope.engine.events import SavedFreed, journal
from stridescope.engine.tensor import Tensor, alias

_counter = itertools.count()


class FunctionCtx:
    """What ``forward`` and ``backward`` are given to pass things from one to the other."""

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors (or None) for ``backward``, which finds them in ``ctx.saved_tensors``."""
        self.to_save: tuple[Any, ...] | None = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors (or None) for ``jvp``."""
        for tensor in tensors:
            if not (isinstance(tensor, Tensor) or tensor is None):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes "
                    "on ctx."
                )
        self.saved_for_forward: tuple[Any, ...] | None = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Say which inputs ``forward`` wrote in place; they must be among what it returns."""
        self.dirty_tensors: tuple[Any, ...] | None = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Deprecated: views are tracked without being told."""
        warnings.warn(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are automatically tracked. Note that "
            "calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )

    def mark_non_differentiable(self, *args: Any) -> None:
        """Say which results have no gradient."""
        self.non_differentiable: tuple[Any, ...] | None = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether ``backward`` gets zeros (True, the default) or None where no gradient arrived."""
        self.materialize_grads = value


class BackwardCFunction(Node, FunctionCtx):
    """The node of a custom function; it is also the ``ctx`` of its calls, so the engine's names have underscores."""

    __slots__ = ()
    stands_in = True
    _forward_cls: type[Function]
    materialize_grads = True
    needs_input_grad: tuple[bool, ...] = ()
    saved_variables: list[SavedTensor | None] | None = None
    to_save: tuple[Any, ...] | None = None
    saved_for_forward: tuple[Any, ...] | None = None
    dirty_tensors: tuple[Any, ...] | None = None
    non_differentiable: tuple[Any, ...] | None = None
    _released = False
    _is_tensor: tuple[bool, ...] = ()
    _shapes: tuple[Any, ...] = ()

    def __dir__(self) -> list[str]:
        return object.__dir__(self)  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{type(self).__name__} object at {id(self):#x}>"

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What ``save_for_backward`` kept; raises RuntimeError when it was freed or written in place since."""
        if self.saved_for_forward is not None:
            return self.saved_for_forward
        if self._released:
            raise RuntimeError(FREED)
        return tuple(None if kept is None else kept.unpack(self) for kept in self.saved_variables or ())

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        if self._released:
            raise RuntimeError(FREED)
        return tuple(self.saved_variables or ())

    def apply(self, *args: Any) -> Any:
        """Run the user's ``backward`` (or ``vjp``) on gradients given one by one; the engine's door is :meth:`_run`."""
        backward = _user_backward(self._forward_cls)
        return backward(self, list(args)) if self._forward_cls.boxed_grads_call else backward(self, *args)

    def apply_boxed(self, grads: list[Any]) -> Any:
        """Run the user's ``backward`` on a list of gradients, which it may empty as it goes."""
        return _user_backward(self._forward_cls)(self, grads)

    def apply_jvp(self, *args: Any) -> Any:
        """Run the user's ``jvp``."""
        return self._forward_cls.jvp(self, *args)

    def _release(self) -> None:
        """Free what was saved for backward."""
        saved, self._released = self.saved_variables, True
        self.saved_variables = None
        for kept in saved or ():
            if kept is not None:
                kept.release()
        if saved and self._id and (emit := journal.emit) is not None:
            emit((SavedFreed.code, self._id))

    def _keep(self, outputs: tuple[Any, ...]) -> None:
        """Make saved tensors of what ``save_for_backward`` was given."""
        made = {id(out) for out in outputs if isinstance(out, Tensor)}
        kept: list[SavedTensor | None] = []
        for position, tensor in enumerate(self.to_save or ()):
            kept.append(None if tensor is None else self._kept(position, tensor, id(tensor) in made))
        self.to_save, self.saved_variables = None, kept

    def _kept(self, position: int, tensor: Any, is_output: bool) -> SavedTensor:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"save_for_backward can only save variables, but argument {position} is of type "
                            f"{type(tensor).__name__}")  # fmt: skip
        if journal.emit is not None:
            record_saved(self, f"saved_tensors[{position}]", tensor, tensor.version_counter.value, is_output)
        return SavedTensor(tensor, is_output)

    def _run(self, gradients: Gradients) -> Gradients:
        """Run the user's backward: zeros for what did not arrive, and one gradient per tensor argument back."""
        given = [self._materialized(g, position) for position, g in enumerate(gradients)]
        results = self.apply(*given)
        return self._checked(results if isinstance(results, tuple) else (results,))

    def _materialized(self, gradient: Tensor | None, position: int) -> Tensor | None:
        if gradient is not None or not self.materialize_grads or self._shapes[position] is None:
            return gradient
        return zeros(self._shapes[position].sizes, self._shapes[position])

    def _checked(self, results: tuple[Any, ...]) -> Gradients:
        expected = len(self._is_tensor)
        if len(results) > expected and all(extra is None for extra in results[expected:]):
            results = results[:expected]
        if len(results) != expected:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {expected}, got "
                f"{len(results)})"
            )
        kept: list[Tensor | None] = []
        for position, (result, was_tensor) in enumerate(zip(results, self._is_tensor, strict=True)):
            if was_tensor:
                if result is not None and not isinstance(result, Tensor):
                    raise RuntimeError(f"expected Variable or None (got {type(result).__name__})")
                kept.append(result)
            elif result is not None:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at position {position + 1}, but "
                    "the corresponding forward input was not a Variable"
                )
        return tuple(kept)


def _user_backward(cls: type[Function]) -> Callable[..., Any]:
    backward, vjp = cls.backward, cls.vjp
    if vjp is not Function.vjp:
        if backward is not Function.backward:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        return vjp
    return backward


class FunctionMeta(type):
    """Gives every subclass of Function its node class, ``NameBackward``."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        super().__init__(name, bases, attrs)
        cls._backward_cls: Any = type(f"{name}Backward", (BackwardCFunction,), {"_forward_cls": cls})
        cls._backward_cls.__module__ = "torch.autograd.function"
        cls._autograd_function_id = next(_counter)


class Function(metaclass=FunctionMeta):
    """The base of custom differentiable functions: write ``forward`` and ``backward``, call ``apply``."""

    generate_vmap_rule = False
    boxed_grads_call = False  # whether backward takes its gradients as one list, which it may empty as it goes

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future "
            "version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: functions are called by ``apply``."""
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function with static forward method. (Example: https://pytorch.org/docs/stable/autograd.html"
            "#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result: ``forward(ctx, *args)``, or without ctx when ``setup_context`` is written too."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save what backward needs, after a ``forward`` without ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """One gradient per argument of ``forward`` from one per result."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """One tangent per result from one per argument of ``forward``."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """The batched form of the function."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run ``forward`` and, when an argument requires grad, put the function's node into the graph."""
        split = cls.setup_context is not Function.setup_context
        if split:
            args, kwargs = _bound(cls.forward, args, kwargs)
        if transforms:
            return transforms[-1](cls, args, kwargs, split)
        return applied(cls, args, kwargs, split)


def _bound(
    forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Keyword arguments and defaults in their places, as ``setup_context`` gets them."""
    import inspect

    bound = inspect.signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args, bound.kwargs


def applied(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any], split: bool) -> Any:
    """Run ``forward`` (and ``setup_context``) and put the node into the graph; ``split`` says that both are written."""
    if ForwardMode.custom is None:
        outputs, node, single = _forward(cls, args, kwargs, split)
    else:
        given = (*args, *kwargs.values())
        outputs, node, single = ForwardMode.custom(lambda: _forward(cls, args, kwargs, split), given)
    node.saved_for_forward = None
    node.dirty_tensors = node.non_differentiable = None
    return outputs[0] if single else outputs


def _forward(
    cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any], split: bool
) -> tuple[tuple[Any, ...], Any, bool]:
    """The results, the node, and whether ``forward`` gave one result that is not a tuple."""
    given = (*args, *kwargs.values())
    is_tensor = tuple(isinstance(a, Tensor) for a in given)
    needs = tuple(isinstance(a, Tensor) and a._requires_grad for a in given)
    executable = grad_mode.enabled and any(needs)
    edges = tuple(gradient_edge(a) for a, tensor in zip(given, is_tensor, strict=True) if tensor) if executable else ()
    node = cls._backward_cls(edges)
    node._is_tensor, node.needs_input_grad = is_tensor, needs
    enabled, grad_mode.enabled = grad_mode.enabled, False
    try:
        if split:
            raw = cls.forward(*args, **kwargs)
            cls.setup_context(node, args, raw)
        else:
            raw = cls.forward(node, *args, **kwargs)
    finally:
        grad_mode.enabled = enabled
    single = not isinstance(raw, tuple)
    outputs = Outputs(node, given, (raw,) if single else raw, executable, split).wrapped()
    if executable:
        node._keep(outputs)
    return outputs, node, single


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a ``backward`` that uses more than tensor ops: differentiating its result raises RuntimeError."""

    @functools.wraps(function)
    def wrapper(ctx: Any, *args: Any) -> Any:
        enabled, grad_mode.enabled = grad_mode.enabled, False
        try:
            outputs = function(ctx, *args)
        finally:
            grad_mode.enabled = enabled
        if not enabled or not any(isinstance(a, Tensor) and a._requires_grad for a in args):
            return outputs
        several = outputs if isinstance(outputs, tuple) else (outputs,)
        node = DelayedError(several)
        refused = tuple(node.refusing(out) for out in several)
        return refused if isinstance(outputs, tuple) else refused[0]

    return wrapper


class DelayedError(Node):
    """A node that refuses to run: what it came from may be differentiated only once."""

    __slots__ = ("sources",)
    shown_name = "torch::autograd::Error"
    message = "trying to differentiate twice a function that was marked with @once_differentiable"

    def __init__(self, sources: tuple[Any, ...]) -> None:
        self.sources = [alias(one) for one in sources if isinstance(one, Tensor)]
        for one in self.sources:
            one._requires_grad = True
        super().__init__(tuple(gradient_edge(one) for one in self.sources))
        self._sequence = LAST

    def refusing(self, tensor: Any) -> Any:
        """An alias of ``tensor`` whose history is this node."""
        if not isinstance(tensor, Tensor):
            return tensor
        detached = alias(tensor)
        set_history(self, [detached])
        return detached

    def _run(self, gradients: Gradients) -> Gradients:
        """Always raises RuntimeError."""
        raise RuntimeError(self.message)


class InplaceFunction(Function):
    """Kept for old code: a Function that may write in place."""


class NestedIOFunction(Function):
    """Kept for old code: a Function of nested inputs."""


DelayedError.__module__ = "torch._C._functions"
for _class in (FunctionCtx, BackwardCFunction, FunctionMeta, Function, InplaceFunction, NestedIOFunction):
    _class.__module__ = "torch.autograd.function"
