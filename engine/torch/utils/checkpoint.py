"""``torch.utils.checkpoint``: keep the inputs only, and run the forward again when backward needs the rest.

The form without reentrant backward replaces every saved tensor by a holder. The first holder that is unpacked in a
backward pass runs the function again, and what that saves fills the holders, in the same order; it stops when the last
one is filled.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

from stridescope.engine.autograd import api
from stridescope.engine.autograd.function import Function
from stridescope.engine.autograd.modes import enable_grad, grad_mode, no_grad
from stridescope.engine.autograd.saved import SavedTensor
from stridescope.engine.autograd.saved_hooks import saved_tensors_hooks
from stridescope.engine.autograd.task import running
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._trees import flatten
from stridescope.engine.torch.utils._op_log import BothRuns
from stridescope.engine.torch.utils._selective import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)
from stridescope.engine.torch.utils.surroundings import Surroundings
from stridescope.engine.warn import warn

_outside = itertools.count(-1, -1)


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function saved other tensors than the first."""


class DefaultDeviceType:
    """The device type whose random state is kept where the arguments name none: ``cuda``, unless it is set."""

    _device = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Choose the type."""
        DefaultDeviceType._device = device

    @staticmethod
    def get_device_type() -> str:
        """The chosen type."""
        return DefaultDeviceType._device


class _Settings:
    """What stands for all calls, until None: each call's own argument counts."""

    early_stop: bool | None = None
    debug: bool | None = None


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Inside the block: whether the second run stops as soon as everything needed is there."""
    before, _Settings.early_stop = _Settings.early_stop, enable
    try:
        yield
    finally:
        _Settings.early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Inside the block: whether the error of runs that differ tells of every op; None leaves it to each call."""
    before, _Settings.debug = _Settings.debug, enabled
    try:
        yield
    finally:
        _Settings.debug = before


def noop_context_fn() -> tuple[Any, Any]:
    """The default ``context_fn``: nothing around either run."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Run ``function`` without keeping what its backward needs; it runs again in the backward pass.

    Args:
        function: what to run.
        args: its arguments.
        use_reentrant: True runs the second forward and its backward inside one node (``CheckpointFunction``), False
            refills the saved tensors one by one. Leaving it out warns and means True.
        context_fn: gives the context managers around the first and the second run.
        determinism_check: ``"default"`` compares shapes, dtypes and devices of what the two runs save; ``"none"`` not.
        debug: log the ops of both runs, and tell of them when the runs differ.
        early_stop: stop the second run when nothing more is needed.
        kwargs: ``preserve_rng_state`` (True by default), and keyword arguments of ``function`` (not when reentrant).
    """
    if use_reentrant is None:
        warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, "
            "calling checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, but "
            "if you need to preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for "
            "more details on the differences between the two variants."
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs and use_reentrant:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if use_reentrant:
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    call = _Call(function, args, kwargs, preserve)
    return call.run(context_fn, determinism_check, debug, early_stop)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run functions one after another in ``segments`` checkpointed pieces; the last piece is not checkpointed."""
    if use_reentrant is None:
        warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. In "
            "version 2.9 we will raise an exception if use_reentrant is not passed. use_reentrant=False is "
            "recommended, but if you need to preserve the current default behavior, you can pass use_reentrant=True. "
            "Refer to docs for more details on the differences between the two variants."
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    children = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(children) // segments
    end = -1
    for start in range(0, size * (segments - 1), size):
        end = start + size - 1
        piece = _in_turn(children[start : end + 1])
        input = checkpoint(piece, input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return _in_turn(children[end + 1 :])(input)


def _in_turn(functions: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def forward(input: Any) -> Any:
        for function in functions:
            input = function(input)
        return input

    return forward


# ---- the reentrant form ---------------------------------------------------------------------------------------------


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs with tensors as leaves of their own."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}"
        )  # fmt: skip
    return tuple(one.detach().requires_grad_(one._requires_grad) if isinstance(one, Tensor) else one for one in inputs)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn when no input requires grad: the checkpointed result will not either."""
    if not any(one._requires_grad for one in inputs if isinstance(one, Tensor)):
        warn("None of the inputs have requires_grad=True. Gradients will be None")


class CheckpointFunction(Function):
    """Runs a function in no_grad; its backward runs it again with a graph, and that graph's backward."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        """Run the function and keep its inputs."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.surroundings = Surroundings(preserve_rng_state)
        ctx.inputs = [None if isinstance(arg, Tensor) else arg for arg in args]
        ctx.tensor_indices = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.tensor_indices))
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Any:
        """Run the function again, and backward through it."""
        if running.task is not None and running.task.needed is not None:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        inputs = list(ctx.inputs)
        for index, tensor in zip(ctx.tensor_indices, ctx.saved_tensors, strict=True):
            inputs[index] = tensor
        points = detach_variable(tuple(inputs))
        with ctx.surroundings.restored(), enable_grad():
            outputs = ctx.run_function(*points)
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        pairs = [(o, g) for o, g in zip(outputs, args, strict=False) if isinstance(o, Tensor) and o._requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        api.backward_many([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(one._grad if isinstance(one, Tensor) else None for one in points))


# ---- the other form -------------------------------------------------------------------------------------------------


class GraphExecGroup:
    """Backward passes in this block share what they compute again; no two may need the same saved tensor."""

    _current: GraphExecGroup | None = None

    def __enter__(self) -> Self:
        if GraphExecGroup._current is not None:
            raise RuntimeError(
                f"GraphExecGroup contexts cannot be nested. Already inside group {GraphExecGroup._current}"
            )
        GraphExecGroup._current = self
        return self

    def __exit__(self, *exc: object) -> None:
        GraphExecGroup._current = None


class _Holder:
    """Stands in a node for one saved tensor; ``keys`` says by pass which recomputed tensor it stands for."""

    __slots__ = ("__weakref__", "keys")

    def __init__(self) -> None:
        self.keys: dict[Any, int] = {}


class _Stop(Exception):
    """Everything the backward pass needs has been computed again."""


class _Frame:
    """One checkpointed call: its holders, and what was computed again for each pass.

    Attributes:
        complete: the first run has ended; before, its own backward passes may ask for a part.
        partial: a second run saved more than the first had saved by then.
    """

    def __init__(self, rerun: Callable[[], Any], check: bool, early_stop: bool) -> None:
        self.rerun, self.check, self.early_stop = rerun, check, early_stop
        self.holders: list[weakref.ref[_Holder]] = []
        self.looks: list[Any] = []
        self.counts: dict[Any, int] = defaultdict(int)
        self.found: dict[Any, dict[int, Tensor]] = defaultdict(dict)
        self.done: set[Any] = set()
        self.complete = self.partial = False

    def pack(self, tensor: Tensor) -> _Holder:
        """The first run saves a tensor."""
        holder = _Holder()
        self.holders.append(weakref.ref(holder))
        self.looks.append(_look(tensor) if self.check else None)
        return holder

    def pack_again(self, number: Any, tensor: Tensor) -> Tensor:
        """The second run saves a tensor: it fills the holder whose turn it is."""
        value: Tensor = tensor.detach() if tensor._requires_grad else tensor
        position = self.counts[number]
        self.counts[number] += 1
        if position >= len(self.holders):
            if self.complete:
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original "
                    f"forward pass.\n\n{_TIP}"
                )
            self.partial = True
            return value
        holder = self.holders[position]()
        if holder is not None:
            holder.keys[number] = position
            self.found[number][position] = value
        if self.early_stop and self.counts[number] == len(self.holders):
            raise _Stop
        return value

    def unpack(self, holder: _Holder) -> Tensor:
        """Backward asks for a tensor."""
        group = GraphExecGroup._current
        number: Any = group or (running.task.number if running.task is not None else next(_outside))
        if number not in self.done:
            self._run_again(number)
        key = holder.keys.pop(number, None)
        if key is None:
            extra = (
                "Performing two backward calls that overlap (i.e. require the same saved activation in order to "
                "compute gradients) is not allowed while under the torch.utils.checkpoint.GraphExecGroup context. "
            )
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. "
                f"{extra if group else ''}If you are calling ctx.saved_tensors in backward, make sure to do so only "
                "once. Otherwise please open an issue with details on your use case."
            )
        return self.found[number].pop(key)

    def _run_again(self, number: Any) -> None:
        hooks = saved_tensors_hooks(functools.partial(self.pack_again, number), lambda tensor: tensor)
        with hooks, contextlib.suppress(_Stop), enable_grad():
            self.rerun()
        self.done.add(number)
        count, expected = self.counts[number], len(self.holders)
        if self.partial:
            return
        if count != expected:
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {expected}\nNumber of tensors saved during "
                f"recomputation: {count}.\n\n{_TIP}"
            )
        if self.check:
            self._compare(number)

    def _compare(self, number: Any) -> None:
        """Refuse tensors that look different from those of the first run."""
        wrong = []
        for position, reference in enumerate(self.holders):
            holder = reference()
            if holder is None or number not in holder.keys:
                continue
            look = _look(self.found[number][holder.keys[number]])
            if look != self.looks[position]:
                was = self.looks[position]
                wrong.append(f"tensor at position {position}:\nsaved metadata: {was}\nrecomputed metadata: {look}")
        if wrong:
            said = "\n".join(wrong)
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                f"during the forward pass.\n{said}\n.\n\n{_TIP}"
            )


_TIP = (
    "Tip: To see a more detailed error message, either pass `debug=True` to\n`torch.utils.checkpoint.checkpoint(...)` "
    "or wrap the code block\nwith `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to\nenable "
    "checkpoint\u2011debug mode globally.\n\nIf this error occurs under torch.compile with automatic_dynamic_shapes "
    "enabled,\nit may be because the recomputation selected a different compiled graph than the\nforward pass (e.g., a "
    "dynamic graph instead of the original static graph).\nTo fix this, either:\n  - Use torch._dynamo.mark_dynamic() "
    "to explicitly mark varying dimensions as\n    dynamic upfront, avoiding the static-to-dynamic transition.\n  - "
    "Call torch._C._dynamo.eval_frame._set_lru_cache(False) to disable LRU cache\n    reordering, which can change "
    "which graph is checked first between forward\n    and recompute.\n"
    "See https://github.com/pytorch/pytorch/issues/166926 for more details and\nworkaround examples.\n"
)


def _look(tensor: Tensor) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


class _Call:
    """A call that is checkpointed without reentrant backward."""

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: dict[str, Any], preserve: bool) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.surroundings = Surroundings(preserve)

    def run(self, context_fn: Callable[[], Any], determinism_check: str, debug: bool, early_stop: bool) -> Any:
        """The first run."""
        logs = None
        if debug if _Settings.debug is None else _Settings.debug:
            if context_fn is not noop_context_fn:
                raise ValueError("debug=True is incompatible with non-default context_fn")
            logs = BothRuns()
            context_fn = logs.contexts
        if determinism_check not in ("default", "none"):
            raise ValueError(
                f"determinism_check should be one of ['default', 'none'], but got {determinism_check}"
            )  # fmt: skip
        around_first, around_second = context_fn()
        if not grad_mode.enabled:  # there will be no backward
            return self.function(*self.args, **self.kwargs)
        early_stop = early_stop if _Settings.early_stop is None else _Settings.early_stop
        frame = _Frame(self._again(around_second), determinism_check == "default", early_stop)
        with saved_tensors_hooks(frame.pack, _telling(logs, frame.unpack)), around_first:
            result = self.function(*self.args, **self.kwargs)
            frame.complete = True
        if not frame.complete:
            raise RuntimeError(
                "torch.utils.checkpoint: the forward context provided by context_fn suppressed an exception raised "
                "during the checkpointed forward. This is not supported because checkpoint cannot return a value for a "
                "failed forward."
            )
        return result

    def _again(self, around: contextlib.AbstractContextManager[Any]) -> Callable[[], None]:
        kept, function, kwargs, surroundings = _Inputs(self.args), self.function, self.kwargs, self.surroundings

        def rerun() -> None:
            with surroundings.restored(), around:
                function(*kept.restored(), **kwargs)

        return rerun


def _telling(logs: BothRuns | None, unpack: Callable[[_Holder], Tensor]) -> Callable[[_Holder], Tensor]:
    """``unpack``, whose error tells of both runs when they were logged."""
    if logs is None:
        return unpack

    def unpack_and_tell(holder: _Holder) -> Tensor:
        try:
            return unpack(holder)
        except CheckpointError as error:
            raise CheckpointError(logs.report()) from error

    return unpack_and_tell


class _Inputs:
    """The arguments of a checkpointed call, kept for its second run as a node keeps tensors: versions are checked."""

    def __init__(self, args: tuple[Any, ...]) -> None:
        self.kept = [SavedTensor(arg) if isinstance(arg, Tensor) else arg for arg in args]

    def restored(self) -> list[Any]:
        """The arguments."""
        return [one.unpack(None) if isinstance(one, SavedTensor) else one for one in self.kept]


# ---- random states of devices ---------------------------------------------------------------------------------------


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The indices of the CUDA devices of the tensors among ``args``, and the states of their generators."""
    tensors = [leaf for leaf in flatten(args)[0] if isinstance(leaf, Tensor) and leaf.device.type == "cuda"]
    devices = [int(tensor.get_device()) for tensor in tensors]
    return devices, [_cuda().get_rng_state(index) for index in devices]


def set_device_states(devices: list[int], states: list[Tensor], *, device_type: str | None = None) -> None:
    """Give the devices' generators the states that :func:`get_device_states` found."""
    for index, state in zip(devices, states, strict=False):
        _cuda().set_rng_state(state, index)


def _cuda() -> Any:
    return importlib.import_module("stridescope.engine.torch.cuda")


for _class in (CheckpointError, CheckpointFunction, DefaultDeviceType, GraphExecGroup):
    _class.__module__ = "torch.utils.checkpoint"
__all__ = [
    "SAC_IGNORED_OPS", "CheckpointError", "CheckpointFunction", "CheckpointPolicy", "DefaultDeviceType",
    "GraphExecGroup", "SelectiveCheckpointContext", "check_backward_validity", "checkpoint", "checkpoint_sequential",
    "create_selective_checkpoint_contexts", "detach_variable", "get_device_states", "noop_context_fn",
    "set_checkpoint_debug_enabled", "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip
