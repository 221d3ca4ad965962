"""What the functions of ``torch.distributed`` check before they begin: tensors, groups and ranks."""

from __future__ import annotations

from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.distributed.groups import default_group, get_group_rank, member
from stridescope.engine.torch.distributed.process_group import ProcessGroup
from stridescope.engine.torch.distributed.reduce_op import kind_of, supports_complex


def check_tensor(value: Any, name: str) -> None:
    """Raise TypeError when the argument is no tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(_not_a(value, name, "torch.Tensor"))


def check_tensors(value: Any, name: str) -> None:
    """Raise TypeError when the argument is no list of tensors."""
    if not isinstance(value, list) or not all(isinstance(each, Tensor) for each in value):
        raise TypeError(_not_a(value, name, "List[torch.Tensor]"))


def _not_a(value: Any, name: str, wanted: str) -> str:
    return (
        f"Invalid function argument. Expected parameter `{name}` of type {wanted}\n"
        f"             but got {type(value)} instead."
    )


def check_same_dtype(*values: Any) -> None:
    """Raise ValueError when the tensors, alone or in lists, differ in dtype."""
    tensors = [each for value in values for each in (value if isinstance(value, list) else [value])]
    for tensor in tensors:
        if tensor.dtype is not tensors[0].dtype:
            raise ValueError(
                f"Invalid usage of tensors with different dtypesFound {tensors[0].dtype} and  {tensor.dtype}"
            )


def as_real(tensor: Tensor, op: Any, what: str) -> Tensor:
    """A tensor that can be reduced: a complex one as its two parts. Raises ValueError where that is not the same."""
    if not tensor.dtype.is_complex:
        return tensor
    if not supports_complex(op):
        raise ValueError(f"{what} does not support {kind_of(op)} on complex tensors")
    from stridescope.engine import torch

    parts: Tensor = torch.view_as_real(tensor.detach())
    return parts


def place(group: Any, rank: int | None, group_rank: int | None, default: int | None = None) -> int:
    """The group's number of the rank that is meant, by its global number or by the group's own."""
    if rank is None and group_rank is None:
        rank = default
    if group_rank is not None:
        if rank is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        return group_rank
    if rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    return get_group_rank(default_group() if group is None else group, rank)


def other(group: ProcessGroup, rank: int, role: str) -> int:
    """The rank itself; raises ValueError when it is this process's own."""
    if group.rank() == rank:
        raise ValueError(
            f"Invalid {role} rank: {role} rank should not be the same as the rank of the current process."
        )  # fmt: skip
    return rank


def inside(group: Any) -> ProcessGroup:
    """The group; raises ValueError when this process is not in it."""
    if (found := member(group)) is None:
        raise ValueError("Invalid process group specified")
    return found
