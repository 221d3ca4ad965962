"""What one rank sends another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stridescope.engine.torch.distributed.checked import check_tensor, other, place
from stridescope.engine.torch.distributed.groups import (
    default_group,
    get_global_rank,
    get_group_rank,
    member,
    warn_not_in_group,
)
from stridescope.engine.torch.distributed.work import Work


def isend(
    tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """Send a tensor; the Work is done when it was sent."""
    check_tensor(tensor, "tensor")
    if (joined := member(group)) is None:
        warn_not_in_group("isend")
        return None
    return joined.send([tensor], other(joined, place(group, dst, group_dst), "destination"), tag)


def send(tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send a tensor."""
    if (work := isend(tensor, dst, group, tag, group_dst)) is not None:
        work.wait()


def irecv(
    tensor: Any, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work | None:
    """Receive into a tensor, from any rank when none is named; the Work is done when it is there."""
    check_tensor(tensor, "tensor")
    if (joined := member(group)) is None:
        warn_not_in_group("irecv")
        return None
    if src is None and group_src is None:
        return joined.recv_anysource([tensor], tag)
    return joined.recv([tensor], place(group, src, group_src), tag)


def recv(tensor: Any, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receive into a tensor and return the global rank that sent; -1 outside of the group."""
    if (work := irecv(tensor, src, group, tag, group_src)) is None:
        return -1
    work.wait()
    return get_global_rank(default_group() if group is None else group, work.source_rank())


class P2POp:
    """One send or receive of :func:`batch_isend_irecv`: ``isend`` or ``irecv`` and its arguments."""

    def __init__(
        self,
        op: Callable[..., Work | None],
        tensor: Any,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        check_tensor(tensor, "tensor")
        self.op, self.tensor, self.tag = op, tensor, tag
        self.group = default_group() if group is None else group
        self.group_peer = place(self.group, peer, group_peer)
        self.peer = get_global_rank(self.group, self.group_peer)

    def __repr__(self) -> str:
        here = get_group_rank(self.group, default_group().rank())
        ends = (here, self.group_peer) if self.op is isend else (self.group_peer, here)
        return (
            f"P2POp({self.op.__name__} pg={self.group.group_name}, group_src={ends[0]}, group_dst={ends[1]},  "
            f"{self.tensor.shape}, {self.tensor.dtype})"
        )


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begin all of them and return their Works."""
    if not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise ValueError(
            "Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``."
        )  # fmt: skip
    group = p2p_op_list[0].group
    if not all(each.group is group for each in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    begun = [_begin(each) for each in p2p_op_list]
    return [work for work in begun if work is not None]


def _begin(one: P2POp) -> Work | None:
    name = "group_dst" if one.op is isend else "group_src"
    return one.op(one.tensor, group=one.group, tag=one.tag, **{name: one.group_peer})


P2POp.__module__ = "torch.distributed.distributed_c10d"
