"""``ProcessGroup``: some of the ranks, and what they do together.

Every exchange is one round: each rank sends what others need of it, then takes what it needs of them. So an exchange
that nobody waits for holds up nobody.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.distributed.carried import array_of, message, values, write
from stridescope.engine.torch.distributed.letters import Letters
from stridescope.engine.torch.distributed.mesh import Mesh, Message
from stridescope.engine.torch.distributed.reduce_op import RedOpType, check_dtype, check_reduction, reduced
from stridescope.engine.torch.distributed.store import Store
from stridescope.engine.torch.distributed.work import Work

Arrays = dict[int, Any]


def _one(tensors: Any) -> Tensor:
    """The tensor, or the only one of a list, as PyTorch's methods take them."""
    found: Tensor = tensors[0] if isinstance(tensors, (list, tuple)) else tensors
    return found


def _option(options: Any, name: str, default: Any) -> Any:
    """An option by its name, or what was given in the options' place."""
    if options is None:
        return default
    return getattr(options, name, options)


class ProcessGroup:
    """Some of the ranks of a job, numbered from 0.

    Its methods are what ``torch.distributed``'s functions call; each returns a :class:`Work`.

    Attributes:
        ranks: the global ranks of its members, in the order of the group.
    """

    bound_device_id = None

    def __init__(self, mesh: Mesh, ranks: Sequence[int], name: str, store: Store, timeout: timedelta) -> None:
        self.ranks, self.group_name, self.timeout = tuple(ranks), name, timeout
        self.group_desc = "default_pg" if name == "0" else "undefined"
        self._mesh, self._store = mesh, store
        self._rank = self.ranks.index(mesh.rank)
        self._numbers = itertools.count()
        self._letters = Letters(mesh, self.ranks, name)
        self._pending: dict[Work, None] = {}

    def rank(self) -> int:
        """This process's place in the group."""
        return self._rank

    def size(self) -> int:
        """How many ranks the group has."""
        return len(self.ranks)

    def name(self) -> str:
        """The backend."""
        return "gloo"

    def get_group_store(self) -> Store:
        """The store by which its members met."""
        return self._store

    def set_timeout(self, timeout: timedelta) -> None:
        """Wait this long from now on."""
        self.timeout = timeout

    def shutdown(self) -> None:
        """Leave the group."""

    abort = shutdown

    # ---- one round --------------------------------------------------------------------------------------------------

    def exchange(
        self,
        what: str,
        sends: Mapping[int, Message],
        sources: Sequence[int],
        take: Callable[[dict[int, Message]], Any],
        result: list[Any] | None,
        timeout: timedelta | None = None,
    ) -> Work:
        """Send messages to ranks of the group; the work is done when ``take`` had those of the sources."""
        key = f"{self.group_name}/c/{next(self._numbers)}"
        for rank, sent in sends.items():
            with suppress(*(() if rank in sources else (RuntimeError,))):  # what it does not need, it may not wait for
                self._mesh.send(self.ranks[rank], key, sent)

        def finish(patience: timedelta) -> None:
            take({rank: self._mesh.receive(self.ranks[rank], key, patience) for rank in sources})

        def ready() -> bool:
            return all(self._mesh.has(self.ranks[rank], key) for rank in sources)

        return self._begun(Work(finish, ready, timeout or self.timeout, result))

    def _begun(self, work: Work) -> Work:
        """Finish what can be finished of the works begun before; those that nobody asks for end here."""
        for earlier in list(self._pending):
            earlier.look()
        if not work.look():
            self._pending[work] = None
            work.when_settled(self._pending.pop)
        return work

    def _round(
        self,
        what: str,
        sends: Arrays,
        into: Mapping[int, Tensor],
        take: Callable[[Arrays], Any],
        result: list[Any] | None,
    ) -> Work:
        """A round of arrays; ``into`` says which tensor has the shape and dtype of what each source sends."""

        def opened(messages: dict[int, Message]) -> None:
            take({rank: values(what, sent, self.ranks[rank], into[rank]) for rank, sent in messages.items()})

        messages = {rank: message(what, array) for rank, array in sends.items()}
        return self.exchange(what, messages, list(into), opened, result)

    def together(self, works: Sequence[Work | None], result: list[Any]) -> Work:
        """One work for several."""
        begun = [work for work in works if work is not None]
        return Work(
            lambda timeout: _waited(begun, timeout), lambda: all(work.look() for work in begun), self.timeout, result
        )

    def _everyone(self, value: Any) -> dict[int, Any]:
        return dict.fromkeys(range(self.size()), value)

    def _check_root(self, what: str, root: int) -> None:
        if not 0 <= root < self.size():
            raise RuntimeError(f"ProcessGroupGloo::{what}: invalid root rank: {root}")

    # ---- collectives ------------------------------------------------------------------------------------------------

    def allreduce(self, tensors: Any, opts: Any = None) -> Work:
        """Every rank gets the reduction of all ranks' tensors."""
        tensor, op = _one(tensors), _option(opts, "reduceOp", RedOpType.SUM)
        check_reduction(op, tensor.dtype.name)

        def take(arrays: Arrays) -> None:
            write(tensor, reduced(op, [arrays[rank] for rank in range(self.size())]))

        return self._round(
            f"all_reduce({op})", self._everyone(array_of(tensor)), self._everyone(tensor), take, [tensor]
        )

    def broadcast(self, tensors: Any, opts: Any = None) -> Work:
        """Every rank gets the root's tensor."""
        tensor, root = _one(tensors), _option(opts, "rootRank", 0)
        self._check_root("broadcast", root)
        check_dtype(tensor.dtype.name)
        if root == self._rank:
            sends = {rank: array_of(tensor) for rank in range(self.size()) if rank != root}
            return self._round("broadcast", sends, {}, lambda arrays: None, [tensor])
        return self._round("broadcast", {}, {root: tensor}, lambda arrays: write(tensor, arrays[root]), [tensor])

    def reduce(self, tensors: Any, opts: Any = None, op: Any = None) -> Work:
        """The root gets the reduction of all ranks' tensors."""
        tensor, root = _one(tensors), _option(opts, "rootRank", 0)
        op = op if op is not None else getattr(opts, "reduceOp", RedOpType.SUM)
        self._check_root("reduce", root)
        check_reduction(op, tensor.dtype.name)

        def take(arrays: Arrays) -> None:
            if arrays:
                write(tensor, reduced(op, [arrays[rank] for rank in range(self.size())]))

        into = self._everyone(tensor) if root == self._rank else {}
        return self._round(f"reduce({op})", {root: array_of(tensor)}, into, take, [tensor])

    def allgather(self, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Work:
        """Every rank gets all ranks' tensors."""
        outputs = output_tensors[0] if output_tensors and isinstance(output_tensors[0], list) else output_tensors
        tensor = _one(input_tensors)
        if len(outputs) != self.size():
            raise RuntimeError(
                f"ProcessGroupGloo::allgather: invalid output tensor list at index 0 (expected length {self.size()}, "
                f"got {len(outputs)})"
            )
        for index, output in enumerate(outputs):
            _check_alike("allgather", index, tensor, output)
        return self._round(
            "all_gather", self._everyone(array_of(tensor)), dict(enumerate(outputs)), _into(outputs), list(outputs)
        )

    def gather(self, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Work:
        """The root gets all ranks' tensors."""
        tensor, root = _one(input_tensors), _option(opts, "rootRank", 0)
        self._check_root("gather", root)
        outputs: list[Tensor] = (output_tensors[0] if output_tensors else []) if root == self._rank else []
        if root == self._rank and len(outputs) != self.size():
            raise RuntimeError(
                f"ProcessGroupGloo::gather: Incorrect output list size {len(outputs)}. Output list size should be "
                f"{self.size()}, same as size of the process group."
            )
        sends = {root: array_of(tensor)}
        return self._round("gather", sends, dict(enumerate(outputs)), _into(outputs), list(outputs))

    def scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Work:
        """Every rank gets its one of the root's tensors."""
        tensor, root = _one(output_tensors), _option(opts, "rootRank", 0)
        self._check_root("scatter", root)
        inputs: list[Tensor] = (input_tensors[0] if input_tensors else []) if root == self._rank else []
        if root == self._rank and len(inputs) != self.size():
            raise RuntimeError(
                f"ProcessGroupGloo::scatter: Incorrect input list size {len(inputs)}. Input list size should be "
                f"{self.size()}, same as size of the process group."
            )
        sends = {rank: array_of(each) for rank, each in enumerate(inputs)}
        return self._round("scatter", sends, {root: tensor}, lambda arrays: write(tensor, arrays[root]), [tensor])

    def reduce_scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Work:
        """Every rank gets the reduction of what all ranks have for it."""
        output, op = _one(output_tensors), _option(opts, "reduceOp", RedOpType.SUM)
        inputs = input_tensors[0] if isinstance(input_tensors[0], (list, tuple)) else input_tensors
        check_reduction(op, output.dtype.name)
        if len(inputs) != self.size():
            raise RuntimeError("invalid input tensor list size, must be world size")

        def take(arrays: Arrays) -> None:
            write(output, reduced(op, [arrays[rank] for rank in range(self.size())]))

        sends = {rank: array_of(each) for rank, each in enumerate(inputs)}
        return self._round(f"reduce_scatter({op})", sends, self._everyone(output), take, [output])

    def alltoall(self, output_tensors: Sequence[Tensor], input_tensors: Sequence[Tensor], opts: Any = None) -> Work:
        """Every rank gets its one of every rank's tensors."""
        for tensors in (output_tensors, input_tensors):
            if len(tensors) != self.size():
                raise RuntimeError("ProcessGroupGloo::alltoall: the number of tensors is not the size of the group")
        sends = {rank: array_of(each) for rank, each in enumerate(input_tensors)}
        into = dict(enumerate(output_tensors))
        return self._round("all_to_all", sends, into, _into(output_tensors), list(output_tensors))

    def barrier(self, opts: Any = None) -> Work:
        """Done when every rank has come here."""
        timeout = opts if isinstance(opts, timedelta) else getattr(opts, "timeout", None)
        everyone = list(range(self.size()))
        sends = self._everyone(Message("barrier", b""))
        return self.exchange("barrier", sends, everyone, lambda messages: _same("barrier", messages), [], timeout)

    def objects(self, what: str, sends: Mapping[int, bytes], sources: Sequence[int]) -> dict[int, bytes]:
        """Exchange bytes of any length."""
        found: dict[int, bytes] = {}

        def take(messages: dict[int, Message]) -> None:
            _same(what, messages)
            found.update({rank: sent.payload for rank, sent in messages.items()})

        self.exchange(what, {rank: Message(what, body) for rank, body in sends.items()}, sources, take, []).wait()
        return found

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """A barrier in which rank 0 names the ranks that do not come."""
        patience, number = timeout or self.timeout, next(self._numbers)
        key = f"{self.group_name}/m/{number}"
        here = Message("monitored_barrier", b"")
        if self._rank:
            self._mesh.send(self.ranks[0], key, here)
            self._mesh.receive(self.ranks[0], key, patience)
            return
        missing: list[int] = []
        for rank in range(1, self.size()):
            try:
                self._mesh.receive(self.ranks[rank], key, timedelta(0) if missing else patience)
            except RuntimeError as error:
                missing.append(rank)
                if not wait_all_ranks:
                    raise RuntimeError(_missed(missing, patience) + f"\n Original exception: \n{error}") from None
        if missing:
            raise RuntimeError(_missed(missing, patience))
        for rank in range(1, self.size()):
            self._mesh.send(self.ranks[rank], key, here)

    # ---- from one rank to another -----------------------------------------------------------------------------------

    def _check_other(self, what: str, rank: int) -> None:
        if not 0 <= rank < self.size():
            raise RuntimeError(f"ProcessGroupGloo::{what}: invalid rank {rank} in a group of {self.size()}")

    def send(self, tensors: Any, dstRank: int, tag: int = 0) -> Work:
        """Send a tensor to a rank of the group."""
        self._check_other("send", dstRank)
        self._letters.send(dstRank, tag, message("send", array_of(_one(tensors))))
        return Work(lambda timeout: None, lambda: True, self.timeout)

    def recv(self, tensors: Any, srcRank: int, tag: int = 0) -> Work:
        """Receive a tensor from a rank of the group."""
        self._check_other("recv", srcRank)
        if srcRank == self._rank:
            raise RuntimeError("Pair is not connected: a rank cannot receive from itself")
        return self._receiving(_one(tensors), *self._letters.expect(srcRank, tag))

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Work:
        """Receive a tensor from whichever rank of the group sends first."""
        return self._receiving(_one(tensors), *self._letters.expect_any(tag))

    def _receiving(self, tensor: Tensor, ready: Callable[[], bool], take: Callable[[timedelta], Any]) -> Work:
        def finish(timeout: timedelta) -> int:
            rank, sent = take(timeout)
            write(tensor, values("send", sent, self.ranks[rank], tensor))
            return int(rank)

        return Work(finish, ready, self.timeout)

    def post(self, rank: int, body: bytes) -> None:
        """Send a rank of the group bytes of any length."""
        self._letters.send(rank, "object", Message("object", body))

    def fetch(self, rank: int | None) -> tuple[int, bytes]:
        """Such bytes from a rank of the group, or with None from any; and which rank it was."""
        _, take = self._letters.expect_any("object") if rank is None else self._letters.expect(rank, "object")
        source, sent = take(self.timeout)
        return source, sent.payload


def _waited(works: Sequence[Work], timeout: timedelta) -> None:
    for work in works:
        work.wait(timeout)


def _into(outputs: Sequence[Tensor]) -> Callable[[Arrays], None]:
    def take(arrays: Arrays) -> None:
        for rank, array in arrays.items():
            write(outputs[rank], array)

    return take


def _same(what: str, messages: Mapping[int, Message]) -> None:
    for rank, sent in messages.items():
        if sent.note != what:
            raise RuntimeError(
                f"the ranks do not do the same: rank {rank} called {sent.note}, while this rank called {what}"
            )


def _check_alike(what: str, index: int, tensor: Tensor, other: Tensor) -> None:
    shape, found = tensor._array.shape, other._array.shape
    if tensor.dtype is not other.dtype:
        raise RuntimeError(
            f"ProcessGroupGloo::{what}: invalid tensor type at index {index} (expected {_options(tensor)}, got "
            f"{_options(other)})"
        )
    if shape != found:
        expected, got = (", ".join(map(str, sizes)) for sizes in (shape, found))
        raise RuntimeError(
            f"ProcessGroupGloo::{what}: invalid tensor size at index {index} (expected ({expected}), got ({got}))"
        )


_CPP = {
    "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "int32": "int",
    "int64": "long int", "int16": "short int", "int8": "signed char", "uint8": "unsigned char", "bool": "bool",
}  # fmt: skip


def _options(tensor: Tensor) -> str:
    name = _CPP.get(tensor.dtype.name, tensor.dtype.name)
    return (
        f"TensorOptions(dtype={name}, device={tensor.device}, layout=Strided, requires_grad=false (default), "
        "pinned_memory=false (default), memory_format=(nullopt))"
    )


def _missed(ranks: Sequence[int], timeout: timedelta) -> str:
    milliseconds = round(timeout.total_seconds() * 1000)
    named = ", ".join(map(str, ranks))
    return f"[Rank 0]: Rank{'s' * (len(ranks) > 1)} {named} failed to pass monitoredBarrier in {milliseconds} ms"


ProcessGroup.__module__ = "torch.distributed.distributed_c10d"
