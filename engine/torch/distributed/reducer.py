"""The Reducer behind DistributedDataParallel: it averages gradients over the ranks while backward still runs.

A hook on each leaf's ``AccumulateGrad`` puts the gradient into its bucket. A bucket that is full, and whose
predecessors are on their way, is sent at once. When all are on their way a callback is queued that, at the end of the
backward pass, waits for them and puts the averages into ``.grad``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from stridescope.engine import torch
from stridescope.engine.autograd.edges import gradient_edge
from stridescope.engine.autograd.node import AccumulateGrad, Node
from stridescope.engine.autograd.task import running
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.distributed.buckets import Bucket, assignment
from stridescope.engine.torch.distributed.grad_bucket import GradBucket
from stridescope.engine.torch.distributed.process_group import ProcessGroup
from stridescope.engine.torch.distributed.reducer_texts import (
    CHANGED,
    NOTHING_UNUSED,
    marked_twice,
    not_a_future,
    unfinished,
)
from stridescope.engine.torch.futures import Future

Hook = Callable[[Any, GradBucket], Any]


class Reducer:
    """Averages the gradients of parameters over a group.

    Args:
        parameters: leaves that require grad, the same on all ranks, with their names.
        group: the ranks.
        limits: bytes of the first buckets; the last one holds for all that follow.
        later_limits: the same for the buckets that are made anew in the order in which gradients came.
        find_unused: look in every forward pass which parameters take part.
        as_views: let ``.grad`` be the gradients' places in the buckets.
    """

    def __init__(
        self,
        parameters: Sequence[tuple[str, Tensor]],
        group: ProcessGroup,
        limits: Sequence[int],
        later_limits: Sequence[int],
        find_unused: bool,
        as_views: bool,
    ) -> None:
        self.names, self.parameters = [name for name, _ in parameters], [each for _, each in parameters]
        self.group, self._later_limits = group, later_limits
        self._find_unused, self._as_views = find_unused, as_views
        self.static_graph = False
        first = sorted(assignment(self.parameters, range(len(self.parameters)), limits), key=min)
        self._make_buckets(first[::-1])
        self._hook: tuple[Any, Hook] | None = None
        self._expecting = self._begun = self._rebuilt = False
        self._order: list[int] = []  # in which order gradients came, until the buckets are made anew
        self._used: list[int] | None = None  # on how many ranks each parameter takes part
        self._counts: list[int] | None = None  # how often each hook fires, in a static graph
        self._reset()
        self._leaves = [_leaf(parameter) for parameter in self.parameters]
        self._handles = [leaf.register_hook(self._arrival(index)) for index, leaf in enumerate(self._leaves)]

    def _arrival(self, index: int) -> Callable[[Any, Any], None]:
        return lambda gradients, outputs: self._arrived(index)

    def remove_hooks(self) -> None:
        """Average no more."""
        for handle in self._handles:
            handle.remove()

    def register_hook(self, state: Any, hook: Hook) -> None:
        """Let ``hook(state, bucket)`` send the buckets; raises RuntimeError when there is one."""
        if self._hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._hook = state, hook

    def set_static_graph(self) -> None:
        """Promise that every iteration uses the same parameters in the same way."""
        if self._begun or self._rebuilt:
            raise RuntimeError(
                "set_static_graph() should be called before training loop starts and after DistributedDataParallel is "
                "constructed."
            )
        self.static_graph = True

    # ---- an iteration -----------------------------------------------------------------------------------------------

    def _make_buckets(self, indices: Sequence[Sequence[int]]) -> None:
        self.buckets = [Bucket(each, self.parameters) for each in indices]
        self._places = {index: (bucket, slot) for bucket in self.buckets for slot, index in enumerate(bucket.indices)}

    def _reset(self) -> None:
        self._ready: set[int] = set()
        self._fired: list[int] = [0] * len(self.parameters)
        self._took_part: list[int] = [0] * len(self.parameters)
        self._unused: list[int] = []
        self._marked_unused = False
        self._flying: list[Callable[[], Any]] = []
        for bucket in self.buckets:
            bucket.missing = len(bucket.indices)

    def rebuild(self) -> bool:
        """Make the buckets anew, in the order in which the first iteration's gradients came; whether it did."""
        self.check_finished()
        waits = self._find_unused and not self.static_graph
        if self._rebuilt or waits or len(self._order) != len(self.parameters):
            return False
        agreed = self._agreed(assignment(self.parameters, self._order, self._later_limits))
        self._rebuilt = True
        self._make_buckets(agreed)
        return True

    def _agreed(self, indices: list[list[int]]) -> list[list[int]]:
        """What rank 0 says: gradients may have come in another order there."""
        box: list[Any] = [indices]
        torch.distributed.broadcast_object_list(box, group=self.group, group_src=0)
        return box[0]  # type: ignore[no-any-return]

    def check_finished(self) -> None:
        """Raise RuntimeError when gradients of the iteration before did not come."""
        if self._begun:
            missing = [index for index in range(len(self.parameters)) if index not in self._ready]
            raise RuntimeError(unfinished(self._find_unused, self.group.rank(), missing))

    def prepare(self, outputs: Sequence[Any]) -> None:
        """Expect a backward pass from these outputs of forward."""
        self.check_finished()
        self._reset()
        self._expecting = True
        if self._find_unused and not self.static_graph:
            reached = _reached(outputs)
            self._unused = [index for index, leaf in enumerate(self._leaves) if leaf not in reached]
            if not self._unused:
                _say_once(self.group.rank())
        elif self._counts is not None:
            self._unused = [index for index, count in enumerate(self._counts) if not count]

    def _arrived(self, index: int) -> None:
        """A gradient was added to its leaf."""
        if not self._expecting:
            return
        self._begun = True
        self._fired[index] += 1
        self._took_part[index] |= self.parameters[index].grad is not None
        if self.static_graph and self._counts is None:
            self._note(index)
            return
        if not self._marked_unused:
            self._marked_unused = True
            for unused in self._unused:
                self._mark(unused)
        if self._counts is not None:
            if not self._counts[index]:
                raise RuntimeError(CHANGED)
            if self._fired[index] < self._counts[index]:
                return
        self._note(index)
        self._mark(index)

    def _note(self, index: int) -> None:
        if not self._rebuilt:
            self._order.append(index)

    def finish_static(self) -> None:
        """At the end of a static graph's first pass: send all gradients, for only now all have come."""
        self._counts = list(self._fired)
        self._order = list(dict.fromkeys(self._order))
        self._order += [index for index in range(len(self.parameters)) if not self._fired[index]]
        for index in range(len(self.parameters)):
            self._mark(index)

    def _mark(self, index: int) -> None:
        """A parameter's gradient of this iteration is there, if it gets one."""
        if index in self._ready:
            raise RuntimeError(marked_twice(index, self.names[index]))
        self._ready.add(index)
        bucket, slot = self._places[index]
        with torch.no_grad():
            self._fill(self.parameters[index], bucket.views[slot])
        bucket.missing -= 1
        if bucket.missing == 0:
            self._send()

    def _fill(self, parameter: Any, view: Any) -> None:
        """Put a gradient into its bucket; it is divided here, so that the sum over the ranks is the average."""
        gradient, share = parameter.grad, 1.0 / self.group.size()
        if gradient is None:
            view.zero_()
        elif gradient.data_ptr() == view.data_ptr():
            if self._hook is None:
                view.mul_(share)
        elif self._hook is None:
            torch.mul(gradient, share, out=view)
        else:
            view.copy_(gradient)
        if self._as_views and gradient is not None:
            parameter.grad = view

    def _send(self) -> None:
        """Send the buckets that are full, in their order: all ranks must send them alike."""
        while len(self._flying) < len(self.buckets) and not self.buckets[len(self._flying)].missing:
            self._flying.append(self._sent(len(self._flying)))
        if len(self._flying) == len(self.buckets):
            if self._find_unused if not self.static_graph else self._used is None:
                self._count_used()
            if running.task is None:
                self.finish()
            else:
                running.task.callbacks.append(self.finish)

    def _sent(self, number: int) -> Callable[[], Any]:
        bucket = self.buckets[number]
        if self._hook is None:
            work = self.group.allreduce([bucket.buffer])
            return lambda: (work.wait(), bucket.buffer)[1]
        shown = GradBucket(number, number == len(self.buckets) - 1, bucket.buffer, bucket.views, bucket.parameters)
        future = self._hook[1](self._hook[0], shown)
        if not isinstance(future, Future):
            raise RuntimeError(not_a_future(future))
        return future.wait

    def _count_used(self) -> None:
        mine = torch.tensor(self._took_part, dtype=torch.int32)
        self.group.allreduce([mine]).wait()
        self._used = mine.tolist()

    def finish(self) -> None:
        """Wait for the buckets and put the averages into ``.grad``."""
        self._expecting = self._begun = False
        with torch.no_grad():
            for bucket, wait in zip(self.buckets, self._flying, strict=True):
                result = wait()
                if not isinstance(result, Tensor):
                    raise RuntimeError(f"Unable to cast {result} to Tensor")
                self._hand_out(bucket, result)
        self._flying = []

    def _hand_out(self, bucket: Bucket, result: Any) -> None:
        if self._as_views:
            bucket.receive(result)
            views = bucket.views
        else:
            views = bucket.views if result is bucket.buffer else bucket.placed(result)
        for index, view in zip(bucket.indices, views, strict=True):
            if self._used is not None and not self._used[index]:
                continue  # no rank used it: its .grad stays as it is
            self._put(self.parameters[index], view)

    def _put(self, parameter: Any, view: Any) -> None:
        if self._as_views:
            if parameter.grad is None or parameter.grad.data_ptr() != view.data_ptr():
                parameter.grad = view
        elif parameter.grad is None:
            parameter.grad = view.clone()
        else:
            parameter.grad.copy_(view)


def _leaf(parameter: Tensor) -> Node:
    node, _ = gradient_edge(parameter)
    assert node is not None
    return node


def _reached(outputs: Sequence[Any]) -> set[Node]:
    """The leaves below some tensors."""
    stack = [node for node, _ in map(gradient_edge, outputs) if node is not None]
    seen: set[Node] = set(stack)
    while stack:
        for child, _ in stack.pop()._edges:
            if child is not None and child not in seen:
                seen.add(child)
                stack.append(child)
    return {node for node in seen if isinstance(node, AccumulateGrad)}


class _Said:
    nothing_unused = False


def _say_once(rank: int) -> None:
    """What PyTorch says on the error stream, where warnings cannot be turned into errors."""
    if not _Said.nothing_unused and os.environ.get("TORCH_CPP_LOG_LEVEL", "WARNING") in ("INFO", "WARNING"):
        _Said.nothing_unused = True
        print(f"[rank{rank}]: Warning: {NOTHING_UNUSED}", file=sys.stderr)
