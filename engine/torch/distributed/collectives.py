"""What all ranks of a group do together. Each function returns None, or with ``async_op`` a Work to wait for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.distributed import options
from stridescope.engine.torch.distributed.checked import (
    as_real,
    check_same_dtype,
    check_tensor,
    check_tensors,
    inside,
    place,
)
from stridescope.engine.torch.distributed.groups import default_group, member, warn_not_in_group
from stridescope.engine.torch.distributed.process_group import ProcessGroup
from stridescope.engine.torch.distributed.reduce_op import RedOpType
from stridescope.engine.torch.distributed.work import Work
from stridescope.engine.warn import warn_once


def _given(work: Work, async_op: bool) -> Work | None:
    """The work itself, or nothing once it is done."""
    if async_op:
        return work
    work.wait()
    return None


def _joined(group: Any, what: str) -> ProcessGroup | None:
    """The group; None, with a warning, when this process is not in it."""
    found = member(group)
    if found is None:
        warn_not_in_group(what)
    return found


def all_reduce(tensor: Any, op: Any = RedOpType.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Put the reduction of all ranks' tensors into each of them."""
    check_tensor(tensor, "tensor")
    if (joined := _joined(group, "all_reduce")) is None:
        return None
    chosen = options.AllreduceOptions()
    chosen.reduceOp = op
    work = joined.allreduce([as_real(tensor, op, "all_reduce")], chosen)
    work.shows([tensor])
    return _given(work, async_op)


def all_reduce_coalesced(
    tensors: Any, op: Any = RedOpType.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """The same for several tensors."""
    warn_once(
        "`torch.distributed.all_reduce_coalesced` will be deprecated. If you must use it, please revisit our "
        "documentation later at https://pytorch.org/docs/main/distributed.html#collective-functions",
        FutureWarning,
    )
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    check_tensors(tensors, "tensor")
    check_same_dtype(tensors)
    if (joined := _joined(group, "all_reduce_coalesced")) is None:
        return None
    return _given(joined.together([all_reduce(each, op, group, True) for each in tensors], tensors), async_op)


def broadcast(
    tensor: Any, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """Put one rank's tensor into those of all."""
    check_tensor(tensor, "tensor")
    chosen = options.BroadcastOptions()
    if member(group) is None and group is not None:
        place(default_group(), src, group_src)
        raise ValueError("Invalid process group specified")
    chosen.rootRank = place(group, src, group_src)
    return _given(inside(group).broadcast([tensor], chosen), async_op)


def reduce(
    tensor: Any,
    dst: int | None = None,
    op: Any = RedOpType.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Put the reduction of all ranks' tensors into one rank's."""
    check_tensor(tensor, "tensor")
    if (joined := _joined(group, "reduce")) is None:
        return None
    chosen = options.ReduceOptions()
    chosen.rootRank, chosen.reduceOp = place(group, dst, group_dst), op
    return _given(joined.reduce([as_real(tensor, op, "reduce")], chosen), async_op)


def all_gather(tensor_list: Any, tensor: Any, group: Any = None, async_op: bool = False) -> Work | None:
    """Put every rank's tensor into the list's tensor of that number."""
    check_tensors(tensor_list, "tensor_list")
    check_tensor(tensor, "tensor")
    check_same_dtype(tensor_list, tensor)
    if (joined := _joined(group, "all_gather")) is None:
        return None
    return _given(joined.allgather([tensor_list], [tensor]), async_op)


def all_gather_coalesced(
    output_tensor_lists: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """The same for several tensors; each rank has a list of outputs."""
    warn_once(
        "`torch.distributed.all_gather_coalesced` will be deprecated. If you must use it, please revisit our "
        "documentation later at https://pytorch.org/docs/main/distributed.html#collective-functions",
        FutureWarning,
    )
    check_tensors(input_tensor_list, "input_tensor_list")
    if (joined := _joined(group, "all_gather_coalesced")) is None:
        return None
    columns = [list(column) for column in zip(*output_tensor_lists, strict=True)]
    works = [joined.allgather([outs], [each]) for outs, each in zip(columns, input_tensor_list, strict=True)]
    return _given(joined.together(works, [out for outs in output_tensor_lists for out in outs]), async_op)


def all_gather_single(output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False) -> Work | None:
    """Put all ranks' tensors one after another into one."""
    check_tensor(input_tensor, "input_tensor")
    check_tensor(output_tensor, "output_tensor")
    if (joined := _joined(group, "all_gather_single")) is None:
        return None
    with _without_grad():
        parts = list(output_tensor.chunk(joined.size(), 0))
    work = joined.allgather([parts], [input_tensor])
    work.shows([output_tensor])
    return _given(work, async_op)


def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """The older name of :func:`all_gather_single`."""
    _renamed("all_gather_into_tensor", "all_gather_single")
    return all_gather_single(output_tensor, input_tensor, group, async_op)


def _renamed(old: str, new: str) -> None:
    warn_once(f"`torch.distributed.{old}` is deprecated. Please use `torch.distributed.{new}` instead.", FutureWarning)


class _without_grad:
    """Views that are written by others are no part of any graph."""

    def __enter__(self) -> None:
        self._before, grad_mode.enabled = grad_mode.enabled, False

    def __exit__(self, *error: object) -> None:
        grad_mode.enabled = self._before


def _check_list(tensors: Any, here: bool, name: str, role: str) -> None:
    """A list of tensors belongs on the rank in that role, and nowhere else."""
    if here:
        if not tensors:
            raise ValueError(f"Argument ``{name}`` must be specified on {role} rank.")
    elif tensors:
        raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{role} ranks.")


def gather(
    tensor: Any,
    gather_list: Any = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Put every rank's tensor into a list on one rank."""
    check_tensor(tensor, "tensor")
    gather_list = gather_list or []
    check_tensors(gather_list, "gather_list")
    check_same_dtype(tensor, gather_list)
    if (joined := _joined(group, "gather")) is None:
        return None
    root = place(group, dst, group_dst, 0)
    _check_list(gather_list, joined.rank() == root, "gather_list", "destination")
    chosen = options.GatherOptions()
    chosen.rootRank = root
    return _given(joined.gather([gather_list] if gather_list else [], [tensor], chosen), async_op)


def scatter(
    tensor: Any,
    scatter_list: Any = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Give every rank its tensor of a list that one rank has."""
    check_tensor(tensor, "tensor")
    scatter_list = scatter_list or []
    check_tensors(scatter_list, "scatter_list")
    check_same_dtype(tensor, scatter_list)
    if (joined := _joined(group, "scatter")) is None:
        return None
    root = place(group, src, group_src, 0)
    _check_list(scatter_list, joined.rank() == root, "scatter_list", "source")
    chosen = options.ScatterOptions()
    chosen.rootRank = root
    return _given(joined.scatter([tensor], [scatter_list] if scatter_list else [], chosen), async_op)


def reduce_scatter(
    output: Any, input_list: Any, op: Any = RedOpType.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Give every rank the reduction of what all ranks have for it in their lists."""
    check_tensor(output, "output")
    check_tensors(input_list, "input_list")
    check_same_dtype(output, input_list)
    if (joined := _joined(group, "reduce_scatter")) is None:
        return None
    chosen = options.ReduceScatterOptions()
    chosen.reduceOp = op
    return _given(joined.reduce_scatter([output], [input_list], chosen), async_op)


def reduce_scatter_single(
    output: Any, input: Any, op: Any = RedOpType.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """The same, with the list's tensors one after another in one."""
    check_tensor(output, "output")
    check_tensor(input, "input")
    if (joined := _joined(group, "reduce_scatter_single")) is None:
        return None
    if output.dim() and input.dim() and output.shape[0] * joined.size() != input.shape[0]:
        raise RuntimeError(
            "Check failed: outputShape[0] * worldSize == inputShape[0] "
            f"({output.shape[0] * joined.size()} vs. {input.shape[0]}). "
        )
    chosen = options.ReduceScatterOptions()
    chosen.reduceOp = op
    with _without_grad():
        parts = list(input.chunk(joined.size(), 0))
    return _given(joined.reduce_scatter([output], [parts], chosen), async_op)


def reduce_scatter_tensor(
    output: Any, input: Any, op: Any = RedOpType.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """The older name of :func:`reduce_scatter_single`."""
    _renamed("reduce_scatter_tensor", "reduce_scatter_single")
    return reduce_scatter_single(output, input, op, group, async_op)


def all_to_all(
    output_tensor_list: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Give every rank its tensor of every rank's list."""
    check_tensors(output_tensor_list, "output_tensor_list")
    check_tensors(input_tensor_list, "input_tensor_list")
    check_same_dtype(output_tensor_list, input_tensor_list)
    if (joined := _joined(group, "all_to_all")) is None:
        return None
    return _given(joined.alltoall(output_tensor_list, input_tensor_list), async_op)


def all_to_all_single(
    output: Any,
    input: Any,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Give every rank its part of every rank's tensor; without sizes the parts are equal."""
    check_tensor(output, "output")
    check_tensor(input, "input")
    check_same_dtype(output, input)
    if (joined := _joined(group, "all_to_all_single")) is None:
        return None
    if not output_split_sizes and not input_split_sizes and output.numel() != input.numel():
        raise RuntimeError("[enforce fail at gloo/alltoall.cc:30] in->size == out->size. ")
    with _without_grad():
        outputs = _split(output, output_split_sizes, joined.size())
        inputs = _split(input, input_split_sizes, joined.size())
    work = joined.alltoall(outputs, inputs)
    work.shows([output])
    return _given(work, async_op)


def _split(tensor: Any, sizes: Sequence[int] | None, ranks: int) -> list[Tensor]:
    whole = tensor.shape[0]
    if not sizes:
        if whole % ranks:
            raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
        sizes = [whole // ranks] * ranks
    if len(sizes) != ranks:
        raise RuntimeError("Number of tensor splits not equal to group size")
    if sum(sizes) != whole:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    return list(tensor.split(list(sizes), 0))


def barrier(
    group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: timedelta | None = None
) -> Work | None:
    """Wait until all ranks are here."""
    if (joined := _joined(group, "barrier")) is None:
        return None
    return _given(joined.barrier(timeout), async_op)


def monitored_barrier(group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """A barrier whose error on rank 0 names the rank (or with ``wait_all_ranks`` all ranks) that did not come."""
    if (joined := _joined(group, "monitored_barrier")) is not None:
        joined.monitored_barrier(timeout, wait_all_ranks)
