"""What a function that ``torch.func`` transforms may write into: its arguments and what it made, no captured tensor.

An interceptor sees each op of the function: memory that no argument of the op had was made inside.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from stridescope.engine.dispatch.op import Op
from stridescope.engine.dispatch.recorded import Interceptors
from stridescope.engine.dispatch.run import flattened
from stridescope.engine.events import journal
from stridescope.engine.storage import Storage
from stridescope.engine.tensor import Tensor


class Captures:
    """The interceptor of one call of a transformed function.

    Attributes:
        points: the tensors that the function was given; they share memory with the caller's.
        made: the memory that was made inside, by its ``id``.
        depth: how many composite ops are at work: what those write in between is their own affair.
    """

    def __init__(self, points: Sequence[Tensor]) -> None:
        self.points = points
        self.made: dict[int, weakref.ref[Storage]] = {}
        self.depth = 0

    def __call__(self, op: Op, call: Callable[..., Any], *args: Any) -> Any:
        """Run the op, or raise RuntimeError when it would write into a captured tensor."""
        if op.schema.writes and not self.depth and isinstance(args[0], Tensor) and not self._is_own(args[0]):
            raise RuntimeError(
                "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place "
                f"operation (aten::{op.qualified}) that would mutate a captured Tensor. This is not supported; please "
                "rewrite the function being transformed to explicitly accept the mutated Tensor(s) as inputs."
            )
        self.depth += op.composite is not None
        try:
            result = call(*args)
        finally:
            self.depth -= op.composite is not None
        self._note(result, args)
        return result

    def _note(self, result: Any, args: tuple[Any, ...]) -> None:
        given = {id(a.storage_) for a in flattened(args) if isinstance(a, Tensor)}
        for one in flattened(result if isinstance(result, (list, tuple)) else (result,)):
            if isinstance(one, Tensor) and id(one.storage_) not in given:
                self.made[id(one.storage_)] = weakref.ref(one.storage_)

    def _is_own(self, target: Tensor) -> bool:
        storage, base = target.storage_, target._base_tensor
        noted = self.made.get(id(storage))
        if noted is not None and noted() is storage:
            return True
        if any(target is point for point in self.points):
            return True
        return base is not None and any(base is point or base is point._base_tensor for point in self.points)


@contextlib.contextmanager
def refused(points: Sequence[Tensor]) -> Iterator[None]:
    """Refuse writes into captured tensors while a function of ``points`` runs."""
    interceptor = Captures(points)
    Interceptors.before.append(interceptor)
    journal.require_full(1)
    try:
        yield
    finally:
        journal.require_full(-1)
        Interceptors.before.remove(interceptor)
