"""Selective checkpointing: a policy chooses the ops whose results are kept, so that the second run finds them."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Self

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._ops import OpOverload, OpOverloadPacket, aten
from stridescope.engine.torch._trees import tree_map
from stridescope.engine.torch.utils._python_dispatch import TorchDispatchMode

SAC_IGNORED_OPS = {aten.detach.default}


class SelectiveCheckpointContext:
    """What a policy is told beside the op and its arguments."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute, self.op_output = is_recompute, op_output


class CheckpointPolicy(enum.Enum):
    """What becomes of an op's result: kept for backward, or computed again there."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVING = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
Storage = dict[OpOverload, dict[int, Any]]
_RECOMPUTE, _CONSUMED = object(), object()
_WHY = (
    "This can happen if the operations in the checkpointed region are nondeterministic or depend on global state that "
    "changed between forward and backward."
)


class _Kept:
    """A value that is kept, and the version it had."""

    def __init__(self, value: Any) -> None:
        self.value = value.detach() if isinstance(value, Tensor) else value
        self.version = value._version if isinstance(value, Tensor) else None

    def get(self, may_change: bool) -> Any:
        """The value; raises RuntimeError when it was written since, unless it may be."""
        if self.version is not None and not may_change and self.value._version != self.version:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return self.value


class _Counting(TorchDispatchMode):
    """Knows how often each op was called."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.calls: dict[OpOverload, int] = defaultdict(int)

    def _number(self, func: OpOverload) -> int:
        self.calls[func] += 1
        return self.calls[func] - 1


class _CachingTorchDispatchMode(_Counting):
    """Around the first run: keeps what the policy says."""

    __module__ = "torch.utils.checkpoint"

    def __init__(self, policy_fn: Callable[..., Any], storage: Storage) -> None:
        super().__init__(storage)
        self.policy_fn = policy_fn

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **kwargs)
        if func in SAC_IGNORED_OPS:
            return result
        context = SelectiveCheckpointContext(is_recompute=False, op_output=result)
        number, policy = self._number(func), self.policy_fn(context, func, *args, **kwargs)
        keeps = policy if isinstance(policy, bool) else policy in _SAVING
        self.storage[func][number] = tree_map(_Kept, result) if keeps else _RECOMPUTE
        return result


class _CachedTorchDispatchMode(_Counting):
    """Around the second run: gives what was kept; only what was not is computed again."""

    __module__ = "torch.utils.checkpoint"

    def __init__(self, policy_fn: Any, storage: Storage, allow_cache_entry_mutation: bool = False) -> None:
        super().__init__(storage)
        self.allow_cache_entry_mutation = allow_cache_entry_mutation

    def __enter__(self) -> Self:
        self.calls.clear()
        return super().__enter__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        entry = _RECOMPUTE if func in SAC_IGNORED_OPS else self._entry(func, self._number(func))
        # A view or a write is not a value that could be kept: it has to be of this run's tensors.
        if entry is _RECOMPUTE or func.is_view or func.writes:
            return func(*args, **kwargs)
        return tree_map(lambda kept: kept.get(self.allow_cache_entry_mutation), entry)

    def _entry(self, func: OpOverload, number: int) -> Any:
        entries = self.storage.get(func)
        if entries is None:
            raise RuntimeError(f"{func} encountered during backward but not found in storage. {_WHY}")
        entry = entries.get(number)
        if entry is None:
            raise RuntimeError(
                f"{func} invocation index {number} encountered during backward but not found in storage. {_WHY}"
            )
        if entry is _CONSUMED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        if entry is not _RECOMPUTE:
            entries[number] = _CONSUMED
        return entry


def _policy_of(ops: list[Any]) -> Callable[..., CheckpointPolicy]:
    """Save the results of these ops; raises ValueError for what is no overload of an op."""
    for op in ops:
        if not isinstance(op, OpOverload):
            more = (
                "Please update the OpOverloadPacket to a specific OpOverload.For example, if you have "
                "`torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`."
            )
            raise ValueError(
                f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. "
                f"{more if isinstance(op, OpOverloadPacket) else ''}"
            )

    def policy(ctx: SelectiveCheckpointContext, op: OpOverload, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        return CheckpointPolicy.MUST_SAVE if op in ops else CheckpointPolicy.PREFER_RECOMPUTE

    return policy


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[TorchDispatchMode, TorchDispatchMode]:
    """The two contexts that ``checkpoint(context_fn=…)`` asks for, so that some results need not be computed twice.

    Args:
        policy_fn_or_list: ``policy(ctx, op, *args, **kwargs)`` gives a :class:`CheckpointPolicy` for each call;
            a list names the ops (such as ``torch.ops.aten.mm.default``) whose results are saved.
        allow_cache_entry_mutation: do not refuse when a saved result was written in place.
    """
    if isinstance(policy_fn_or_list, list):
        policy_fn: Callable[..., Any] = _policy_of(policy_fn_or_list)
    elif callable(policy_fn_or_list):
        policy_fn = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: Storage = defaultdict(dict)
    return (
        _CachingTorchDispatchMode(policy_fn, storage),
        _CachedTorchDispatchMode(None, storage, allow_cache_entry_mutation),
    )


for _class in (SelectiveCheckpointContext, CheckpointPolicy):
    _class.__module__ = "torch.utils.checkpoint"
