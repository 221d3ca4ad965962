"""Process groups: how they begin and end, and what one can ask about them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, ClassVar

from stridescope.engine.torch.distributed.backend import Backend, BackendConfig, check_backend
from stridescope.engine.torch.distributed.constants import default_pg_timeout
from stridescope.engine.torch.distributed.mesh import Mesh
from stridescope.engine.torch.distributed.process_group import ProcessGroup
from stridescope.engine.torch.distributed.rendezvous import rendezvous
from stridescope.engine.torch.distributed.store import PrefixStore, Store
from stridescope.engine.warn import warn


class _World:
    """What this process knows of its job."""

    default: ProcessGroup | None = None
    mesh: Mesh | None = None
    backends: ClassVar[dict[ProcessGroup, str]] = {}
    ranks: ClassVar[dict[Any, tuple[int, ...]]] = {}  # also of the last group that this process is not in
    names = itertools.count()

    @classmethod
    def forget(cls) -> None:
        if cls.mesh is not None:
            cls.mesh.close()
        cls.default = cls.mesh = None
        cls.backends.clear()
        cls.ranks.clear()
        cls.names = itertools.count()


class _Meta(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all ranks; None before ``init_process_group``."""
        return _World.default

    @WORLD.setter
    def WORLD(cls, value: ProcessGroup | None) -> None:
        _World.default = value


class group(metaclass=_Meta):
    """``group.WORLD``: the group of all ranks."""


class GroupMember(metaclass=_Meta):
    """``GroupMember.NON_GROUP_MEMBER``: what ``new_group`` gives to ranks that are not in the group."""

    NON_GROUP_MEMBER = -100


def is_available() -> bool:
    """Yes."""
    return True


def is_initialized() -> bool:
    """Whether ``init_process_group`` was called."""
    return _World.default is not None


def is_torchelastic_launched() -> bool:
    """Whether ``torchrun`` started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def default_group() -> ProcessGroup:
    """The group of all ranks; raises ValueError when there is none."""
    if _World.default is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return _World.default


def member(group: Any) -> ProcessGroup | None:
    """The group that is meant, by default that of all ranks; None when this process is not in it."""
    if group is None:
        return default_group()
    if group == GroupMember.NON_GROUP_MEMBER:
        return None
    if group not in _World.backends:
        raise ValueError(
            f"Process group {group} is not initialized in the world group map. Please initialize the group first."
        )
    return group  # type: ignore[no-any-return]


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
    _ranks: list[int] | None = None,
) -> None:
    """Meet the other processes of the job and make the group of all.

    Args:
        backend: ``gloo``, by default.
        init_method: where to meet: ``env://`` (the default), ``tcp://host:port`` or ``file:///path``.
        timeout: how long ranks wait for each other.
        world_size: how many processes there are.
        rank: which of them this is.
        store: where they meet, in place of ``init_method``; then ``rank`` and ``world_size`` are needed.
        group_name: ignored, as in PyTorch.
        pg_options: ignored: there is nothing to choose.
        device_id: ignored: tensors pass through the host.

    Raises:
        ValueError: there is a group already, or the address is incomplete.
        RuntimeError: the backend is not here, or the others do not come in time.
    """
    if _World.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    name = Backend(Backend.UNDEFINED if backend is None else backend)
    patience = _checked(default_pg_timeout if timeout is None else timeout)
    if name == Backend.MPI:
        check_backend(name)
    if store is None:
        store, rank, world_size = next(rendezvous(init_method or "env://", rank, world_size, timeout=patience))
        store.set_timeout(patience)
    else:
        _check_place(rank, world_size)
    check_backend(name)
    if rank >= world_size:
        raise RuntimeError(f"[enforce fail at gloo/context.cc:23] rank < size. {rank} vs {world_size}")
    part = PrefixStore("default_pg", store)
    _World.mesh = Mesh(rank, world_size, PrefixStore("ranks", part), patience)
    made = ProcessGroup(_World.mesh, range(world_size), str(next(_World.names)), part, patience)
    _World.default, _World.backends[made], _World.ranks[made] = made, name, made.ranks


def _checked(timeout: Any) -> timedelta:
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    return timeout


def _check_place(rank: int, world_size: int) -> None:
    if world_size <= 0:
        raise AssertionError("world_size must be positive if using store")
    if rank < 0:
        raise AssertionError("rank must be non-negative if using store")


def destroy_process_group(group: Any = None) -> None:
    """End a group; without one, all of them. Raises AssertionError when there is none."""
    if group == GroupMember.NON_GROUP_MEMBER:
        return
    chosen = _World.default if group is None else group
    if chosen is None:
        raise AssertionError("Process group cannot be None")
    if chosen not in _World.backends:
        raise ValueError("Invalid process group specified or has been destroyed.")
    if chosen is _World.default:
        _World.forget()
    else:
        del _World.backends[chosen], _World.ranks[chosen]


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """A group of some of the ranks; all ranks must call it. Ranks outside get ``GroupMember.NON_GROUP_MEMBER``."""
    world = default_group()
    name = _World.backends[world] if backend is None else Backend(backend)
    patience = world.timeout if timeout is None else _checked(timeout)
    members = list(range(world.size())) if ranks is None else sorted(ranks) if sort_ranks else list(ranks)
    _check_ranks(members, world.size())
    check_backend(name)
    title = f"local-{'-'.join(map(str, members))}" if use_local_synchronization else str(next(_World.names))
    made: Any = GroupMember.NON_GROUP_MEMBER
    if world.rank() in members:
        assert _World.mesh is not None
        part = PrefixStore(title, world.get_group_store())
        made = ProcessGroup(_World.mesh, members, title, part, patience)
        made.group_desc = group_desc or "undefined"
        _World.backends[made] = name
    _World.ranks[made] = tuple(members)
    if not use_local_synchronization:
        world.barrier().wait()
    return made


def _check_ranks(ranks: list[int], size: int) -> None:
    if not ranks:
        raise ValueError("new_group: the list of ranks is empty")
    for rank in ranks:
        if not 0 <= rank < size:
            raise ValueError(
                f"Rank {rank} is out of range. Valid ranks are 0 to {size - 1} (world_size={size})"
            )  # fmt: skip
    if len(set(ranks)) != len(ranks):
        raise ValueError(f"ranks list must not contain duplicate entries, got {ranks}")


def new_subgroups(
    group_size: int | None = None,
    group: Any = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Split the ranks into groups of ``group_size`` neighbours: this rank's group, and all groups."""
    if group_size is None:
        raise ValueError(
            "Default group size only takes effect when CUDA is available.If your subgroup using a backend that does "
            "not depend on CUDA,please pass in 'group_size' correctly."
        )
    size = get_world_size(group)
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if size < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})")
    if size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by '{group_size=}'")
    ranks = get_process_group_ranks(group)
    parts = [ranks[start : start + group_size] for start in range(0, size, group_size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups of these ranks: this rank's group (None when it is in none), and all groups."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen: dict[int, Sequence[int]] = {}
    for ranks in ranks_per_subgroup_list:
        for rank in ranks:
            if rank in seen:
                raise ValueError(f"Rank {rank} has appeared in both subgroup {seen[rank]} and {ranks}")
            seen[rank] = ranks
    groups = [new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
              for ranks in ranks_per_subgroup_list]  # fmt: skip
    own = [made for made, ranks in zip(groups, ranks_per_subgroup_list, strict=True) if get_rank() in ranks]
    return (own[0] if own else None), groups


# ---- questions ------------------------------------------------------------------------------------------------------


def get_rank(group: Any = None) -> int:
    """This process's place in a group, by default that of all ranks; -1 when it is not in it."""
    default_group()
    found = member(group)
    return -1 if found is None else found.rank()


def get_world_size(group: Any = None) -> int:
    """How many ranks a group has, by default that of all; -1 when this process is not in it."""
    default_group()
    found = member(group)
    return -1 if found is None else found.size()


def _backend(group: Any) -> str:
    chosen = default_group() if group is None else group
    if chosen not in _World.backends:
        raise ValueError("Invalid process group specified")
    return _World.backends[chosen]


def get_backend(group: Any = None) -> str:
    """The name of a group's backend, as it was given."""
    return _backend(group)


def get_backend_config(group: Any = None) -> str:
    """The backend of each kind of device."""
    return repr(BackendConfig(_backend(group)))


def _ranks(group: Any) -> tuple[int, ...]:
    if group not in _World.ranks:
        raise ValueError(
            f"Group {group} is not registered, please create group with torch.distributed.new_group API"
        )  # fmt: skip
    return _World.ranks[group]


def get_process_group_ranks(group: Any) -> list[int]:
    """The global ranks of a group's members."""
    return list(_ranks(default_group() if group is None else group))


def get_group_rank(group: Any, global_rank: int) -> int:
    """A rank's place in a group; raises ValueError when it is not in it."""
    if group is _World.default:
        return global_rank
    if global_rank not in (ranks := _ranks(group)):
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def get_global_rank(group: Any, group_rank: int) -> int:
    """The global rank of a group's member; raises ValueError when the group has no such member."""
    if group is _World.default:
        return group_rank
    if not 0 <= group_rank < len(ranks := _ranks(group)):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The rank on this machine, as the launcher gave it in LOCAL_RANK."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, "
        "assuming you are not running in a multi-device context and want the code to run locally instead."
    )


def get_pg_count() -> int:
    """How many groups this process has."""
    return len(_World.backends)


def warn_not_in_group(what: str) -> None:
    """Say that a collective does nothing, for this process is not in the group."""
    rank = -1 if _World.default is None else _World.default.rank()
    warn(f"Running {what} on global rank {rank} which does not belong to the given group.")


for _function in (init_process_group, destroy_process_group, new_group, get_rank, get_world_size):
    _function.__module__ = "torch.distributed.distributed_c10d"
