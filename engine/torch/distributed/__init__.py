"""``torch.distributed``: processes that work on one job, on one machine, over sockets (the backend ``gloo``)."""

from __future__ import annotations

from stridescope.engine.torch._elsewhere import file_of
from stridescope.engine.torch._not_yet import missing_from
from stridescope.engine.torch.distributed.backend import (
    Backend,
    BackendConfig,
    get_default_backend_for_device,
    is_backend_available,
    is_gloo_available,
    is_mpi_available,
    is_nccl_available,
    is_ucc_available,
    is_xccl_available,
)
from stridescope.engine.torch.distributed.collectives import (
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
)
from stridescope.engine.torch.distributed.constants import default_pg_timeout
from stridescope.engine.torch.distributed.errors import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    QueueEmptyError,
)
from stridescope.engine.torch.distributed.file_store import FileStore
from stridescope.engine.torch.distributed.grad_bucket import BuiltinCommHookType, GradBucket
from stridescope.engine.torch.distributed.groups import (
    GroupMember,
    default_group,
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_available,
    is_initialized,
    is_torchelastic_launched,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
)
from stridescope.engine.torch.distributed.objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from stridescope.engine.torch.distributed.options import (
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)
from stridescope.engine.torch.distributed.point_to_point import P2POp, batch_isend_irecv, irecv, isend, recv, send
from stridescope.engine.torch.distributed.process_group import ProcessGroup
from stridescope.engine.torch.distributed.reduce_op import ReduceOp, reduce_op, supports_complex
from stridescope.engine.torch.distributed.rendezvous import register_rendezvous_handler, rendezvous
from stridescope.engine.torch.distributed.store import HashStore, PrefixStore, Store
from stridescope.engine.torch.distributed.tcp_store import TCPStore
from stridescope.engine.torch.distributed.work import Work

_get_default_group = default_group
_DEFAULT_FIRST_BUCKET_BYTES = 1 << 20
__all__ = [
    "AllToAllOptions", "AllreduceCoalescedOptions", "AllreduceOptions", "Backend", "BackendConfig", "BarrierOptions",
    "BroadcastOptions", "BuiltinCommHookType", "DistBackendError", "DistError", "DistNetworkError", "DistStoreError",
    "FileStore", "GatherOptions", "GradBucket", "GroupMember", "HashStore", "P2POp", "PrefixStore", "ProcessGroup",
    "QueueEmptyError", "ReduceOp", "ReduceOptions", "ReduceScatterOptions", "ScatterOptions", "Store", "TCPStore",
    "Work", "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object", "all_gather_single",
    "all_reduce", "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv",
    "broadcast", "broadcast_object_list", "default_pg_timeout", "destroy_process_group", "gather", "gather_object",
    "get_backend", "get_backend_config", "get_default_backend_for_device", "get_global_rank", "get_group_rank",
    "get_node_local_rank", "get_pg_count", "get_process_group_ranks", "get_rank", "get_world_size", "group",
    "init_process_group", "irecv", "is_available", "is_backend_available", "is_gloo_available", "is_initialized",
    "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", "is_ucc_available", "is_xccl_available",
    "isend", "monitored_barrier", "new_group", "new_subgroups", "new_subgroups_by_enumeration", "recv",
    "recv_object_list", "reduce", "reduce_op", "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor",
    "register_rendezvous_handler", "rendezvous", "scatter", "scatter_object_list", "send", "send_object_list",
    "supports_complex",
]  # fmt: skip
file_of(f"{__name__}.distributed_c10d", {name: value for name, value in globals().items() if name[:2] != "__"})
__getattr__ = missing_from("torch.distributed", __name__)
