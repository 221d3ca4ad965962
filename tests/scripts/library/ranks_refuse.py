"""What torch.distributed says when it is used wrongly, in one process."""

import datetime
import os

import torch
import torch.distributed as dist


def say(act, *args, **options):
    try:
        print(getattr(act, "__name__", "?"), "->", act(*args, **options))
    except Exception as error:
        print(getattr(act, "__name__", "?"), "!!", type(error).__name__, error)


for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"):
    os.environ.pop(name, None)
x = torch.ones(2)
say(dist.is_available)
say(dist.is_initialized)
say(dist.get_rank)
say(dist.all_reduce, x)
say(dist.destroy_process_group)
for name, value in (("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "localhost"), ("", "")):
    say(dist.init_process_group, "gloo")
    if name:
        os.environ[name] = value
say(dist.init_process_group, "gloo", rank=0)
say(dist.init_process_group, "gloo", init_method="tcp://localhost:0")
say(dist.init_process_group, "gloo", init_method="tcp://localhost:0", rank=0)
say(dist.init_process_group, "gloo", init_method="tcp://localhost", rank=0, world_size=1)
say(dist.init_process_group, "gloo", init_method="file://", rank=0, world_size=1)
say(dist.init_process_group, "gloo", init_method="what://x", rank=0, world_size=1)
say(dist.init_process_group, "gloo", init_method=3, rank=0, world_size=1)
say(dist.init_process_group, "gloo", init_method="env://", store=dist.HashStore(), rank=0, world_size=1)
say(dist.init_process_group, "gloo", store=dist.HashStore())
say(dist.init_process_group, "gloo", store=dist.HashStore(), world_size=1)
say(dist.init_process_group, "gloo", store=dist.HashStore(), rank=0, world_size=1, timeout=3)
say(dist.init_process_group, "nothing", store=dist.HashStore(), rank=0, world_size=1)
say(dist.init_process_group, "nccl", store=dist.HashStore(), rank=0, world_size=1)
say(dist.init_process_group, "mpi")
say(dist.init_process_group, "gloo", store=dist.HashStore(), rank=0, world_size=1)
say(dist.init_process_group, "gloo", store=dist.HashStore(), rank=0, world_size=1)
for ask in (dist.get_rank, dist.get_world_size, dist.get_backend, dist.get_backend_config, dist.get_node_local_rank):
    say(ask)
world = dist.group.WORLD
print(world.rank(), world.size(), world.name(), world.group_desc, type(world).__name__)
say(dist.all_reduce, [x])
say(dist.all_reduce, torch.ones(1, dtype=torch.int16))
say(dist.all_reduce, torch.ones(1), dist.ReduceOp.BAND)
say(dist.all_reduce, torch.ones(1, dtype=torch.int64), dist.ReduceOp.AVG)
say(dist.all_reduce, torch.ones(1, dtype=torch.complex64), dist.ReduceOp.MAX)
say(dist.broadcast, x)
say(dist.broadcast, x, 3)
say(dist.broadcast, x, 0, group_src=0)
say(dist.all_gather, [torch.zeros(2)] * 2, x)
say(dist.all_gather, [torch.zeros(2, dtype=torch.int64)], x)
say(dist.all_gather, [torch.zeros(3)], x)
say(dist.all_gather, x, x)
say(dist.all_gather_single, torch.zeros(3), x)
say(dist.all_gather_single, torch.zeros(2, dtype=torch.int32), x)
say(dist.gather, x)
say(dist.gather, x, [torch.zeros(2)] * 2)
say(dist.scatter, x)
say(dist.scatter, x, [torch.ones(2)] * 2)
say(dist.reduce_scatter, x, [x, x])
say(dist.all_to_all_single, torch.zeros(2), x, [1], [2])
say(dist.all_to_all_single, torch.zeros(2), x, [1, 1], [2])
say(dist.reduce, x)
say(dist.send, x, 0)
say(dist.send, x)
say(dist.scatter_object_list, [None], None, 0)
say(dist.scatter_object_list, [], ["s"], 0)
say(dist.gather_object, "a")
say(dist.P2POp, dist.all_reduce, x, 0)
say(dist.batch_isend_irecv, [3])
say(dist.new_group, [1])
say(dist.new_group, [0, 0])
say(dist.new_subgroups, 2)
say(dist.new_subgroups, 0)
say(dist.new_subgroups_by_enumeration, [[0], [0]])
say(dist.new_subgroups_by_enumeration, None)
say(dist.all_reduce, x, group=3)
outside = dist.GroupMember.NON_GROUP_MEMBER
print(dist.get_rank(outside), dist.get_world_size(outside), dist.all_reduce(x, group=outside), outside)
say(dist.get_backend, outside)
print(dist.ReduceOp.SUM, repr(dist.ReduceOp.AVG), int(dist.ReduceOp.MAX), dist.ReduceOp(dist.ReduceOp.MIN) == dist.ReduceOp.MIN)
print(dist.Backend("GLOO"), dist.Backend.NCCL, dist.is_nccl_available(), dist.is_gloo_available(), dist.default_pg_timeout)
say(dist.Backend, 3)
say(dist.destroy_process_group)
say(dist.destroy_process_group)

short = datetime.timedelta(milliseconds=50)
for store in (dist.HashStore(), dist.PrefixStore("part", dist.HashStore()), dist.TCPStore("localhost", 0, 1, True)):
    store.set("a", "1")
    store.set("b", b"\x01\x02")
    print(store.get("a"), store.get("b"), store.add("c", 3), store.add("c", 4), store.get("c"), store.add("a", 4))
    print(store.compare_set("d", "", "x"), store.compare_set("d", "y", "z"), store.compare_set("d", "x", "z"), store.compare_set("e", "q", "z"))
    print(store.check(["c"]), store.check(["c", "zz"]), store.delete_key("a"), store.delete_key("a"), store.timeout)
    say(store.wait, ["c"])
    say(store.wait, ["zz", "yy"], short)
    store.set_timeout(short)
    say(store.get, "zz")
    store.multi_set(["m", "n"], ["1", "2"])
    store.append("m", "xx")
    print(store.multi_get(["m", "n"]), sorted(store.list_keys()), store.has_extended_api())
    store.queue_push("q", "v")
    print(store.queue_len("q"), store.queue_pop("q"))
    say(store.queue_pop, "q", False)
    say(store.queue_pop, "q")
    print(store.clone().get("n"), store.barrier("met", 1, short))
    say(store.barrier, "met twice", 2, short)
say(dist.TCPStore, "localhost", 1, 2, False, timeout=short)
