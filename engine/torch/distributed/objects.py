"""Collectives of any Python objects that can be pickled."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from typing import Any

from stridescope.engine.torch.distributed.checked import inside, other, place
from stridescope.engine.torch.distributed.groups import default_group, get_global_rank, member, warn_not_in_group
from stridescope.engine.torch.distributed.process_group import ProcessGroup


def _round(
    group: ProcessGroup, what: str, sends: Mapping[int, Any], sources: Sequence[int]
) -> dict[int, Any]:  # fmt: skip
    found = group.objects(what, {rank: pickle.dumps(each) for rank, each in sends.items()}, sources)
    return {rank: pickle.loads(body) for rank, body in found.items()}


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Put every rank's object into the list."""
    if (joined := member(group)) is None:
        return warn_not_in_group("all_gather_object")
    everyone = list(range(joined.size()))
    for rank, each in _round(joined, "all_gather_object", dict.fromkeys(everyone, obj), everyone).items():
        object_list[rank] = each


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Put every rank's object into a list on one rank."""
    if (joined := member(group)) is None:
        return warn_not_in_group("gather_object")
    root = place(group, dst, group_dst, 0)
    here = joined.rank() == root
    if here and not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if not here and object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    sources = list(range(joined.size())) if here else []
    for rank, each in _round(joined, "gather_object", {root: obj}, sources).items():
        assert object_gather_list is not None
        object_gather_list[rank] = each


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> None:
    """Put one rank's objects into the lists of all."""
    if (joined := member(group)) is None:
        return warn_not_in_group("broadcast_object_list")
    root = place(group, src, group_src, 0)
    if joined.rank() == root:
        others = [rank for rank in range(joined.size()) if rank != root]
        _round(joined, "broadcast_object_list", dict.fromkeys(others, list(object_list)), [])
    else:
        object_list[:] = _round(joined, "broadcast_object_list", {}, [root])[root]


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Put each rank's object of one rank's list at the head of that rank's own."""
    if (joined := member(group)) is None:
        return warn_not_in_group("scatter_object_list")
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    root = place(group, src, group_src, 0)
    sends: dict[int, Any] = {}
    if joined.rank() == root:
        if scatter_object_input_list is None:
            raise ValueError("source rank must provide non-None scatter_object_input_list")
        sends = dict(enumerate(scatter_object_input_list))
        if len(sends) != joined.size():
            raise ValueError(f"scatter_object_input_list needs {joined.size()} objects, but has {len(sends)}")
    scatter_object_output_list[0] = _round(joined, "scatter_object_list", sends, [root])[root]


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send a rank these objects."""
    if (joined := member(group)) is None:
        return warn_not_in_group("send_object_list")
    joined.post(other(joined, place(group, dst, group_dst), "destination"), pickle.dumps(list(object_list)))


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive objects into a list and return the global rank that sent; -1 outside of the group."""
    if (joined := member(group)) is None:
        warn_not_in_group("recv_object_list")
        return -1
    joined = inside(group)
    anyone = src is None and group_src is None
    source, body = joined.fetch(None if anyone else other(joined, place(group, src, group_src), "source"))
    object_list[:] = pickle.loads(body)
    return get_global_rank(default_group() if group is None else group, source)
