"""DistributedDataParallel: one process looks into the buckets, then two train together."""

import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x, both=True):
        return self.a(x) + (self.b(x) if both else 0)


class Mixed(Two):
    def forward(self, x):
        return self.b.double()(self.a(x).double())


def say(act):
    try:
        print(act())
    except Exception as error:
        print(type(error).__name__, "".join(str(error).splitlines(True)[:5]))


def shown(state, bucket):
    shapes = [tuple(gradient.shape) for gradient in bucket.gradients()]
    print("bucket", bucket.index(), bucket.is_last(), bucket.buffer().numel(), bucket.buffer().dtype, shapes[:3])
    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


def alone():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    wide = lambda: nn.Sequential(*[nn.Linear(300, 300) for _ in range(5)])
    x = torch.ones(1, 300)
    for options in ({}, {"find_unused_parameters": True}, {"bucket_cap_mb": 1}, {"bucket_cap_mb_list": [0.5, 1]}):
        net = DDP(wide(), **options)
        net.register_comm_hook(None, shown)
        for _ in range(3):
            net(x).sum().backward()
    say(lambda: net.register_comm_hook(None, shown))
    net = DDP(Mixed())
    net.module.b.double()
    net = DDP(net.module)
    net.register_comm_hook(None, shown)
    for _ in range(2):
        net(torch.ones(1, 2)).sum().backward()
    print(net, list(net.state_dict()), net.device_ids, net.broadcast_buffers, net.bucket_bytes_cap)

    x = torch.ones(1, 2)
    net = DDP(Two())
    net(x, both=False).sum().backward()
    print(net.module.a.weight.grad, net.module.b.weight.grad)
    say(lambda: net(x))
    net = DDP(Two(), find_unused_parameters=True)
    for both in (False, True, False):
        out = net(x, both=both)
        out.sum().backward()
        print(out.grad_fn.name(), net.module.a.weight.grad, net.module.b.weight.grad)
    net = DDP(Two(), static_graph=True)
    for both in (False, False, True):
        say(lambda: net(x, both=both).sum().backward())
        print(net.module.a.weight.grad, net.module.b.weight.grad)
    net = DDP(Two(), gradient_as_bucket_view=True)
    net(x).sum().backward()
    grad = net.module.a.weight.grad
    print(grad, grad._is_view(), grad._base.numel(), grad.storage_offset())
    say(grad.detach_)
    net = DDP(Two())
    with net.no_sync():
        net(x).sum().backward()
        print(net.require_backward_grad_sync, net.module.a.weight.grad)
    net(x).sum().backward()
    print(net.module.a.weight.grad)
    net = DDP(Two())
    net.module.a.weight.register_hook(lambda grad: print("tensor hook"))
    net.module.a.weight.register_post_accumulate_grad_hook(lambda leaf: print("after", leaf.grad))
    (net(x) + net(x)).sum().backward()
    for hook in (
        lambda state, bucket: bucket.buffer(),
        lambda state, bucket: 1 / 0,
        3,
        default_hooks.bf16_compress_hook,
    ):
        net = DDP(Two())
        try:
            net.register_comm_hook(None, hook)
            net(x).sum().backward()
        except Exception as error:
            print(type(error).__name__, str(error)[-90:])
    for module, options in (
        (nn.ReLU(), {}),
        (nn.Linear(2, 2).requires_grad_(False), {}),
        (nn.Linear(2, 2), {"device_ids": [0]}),
        (nn.Linear(2, 2), {"device_ids": [0, 1]}),
        (nn.LazyLinear(2), {}),
        (nn.Sequential(nn.Linear(2, 2), nn.SyncBatchNorm(2)), {}),
    ):
        say(lambda: DDP(module, **options))
    dist.destroy_process_group()
    say(lambda: DDP(Two()))


def train(rank, size, path):
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=size)
    told = []
    torch.manual_seed(rank)
    torch.set_default_dtype(torch.float64)
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 1))
    ddp = DDP(net)
    told.append(net[0].weight)
    data = TensorDataset(torch.randn(16, 2, generator=torch.Generator().manual_seed(7)))
    sampler = DistributedSampler(data, seed=3)
    optimizer = torch.optim.SGD(ddp.parameters(), 0.1, momentum=0.9)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        told.append(list(sampler))
        for (x,) in DataLoader(data, batch_size=4, sampler=sampler):
            optimizer.zero_grad()
            ddp(x).pow(2).mean().backward()
            nn.utils.clip_grad_norm_(ddp.parameters(), 1.0)
            optimizer.step()
            told.append((net[0].weight.grad, net[1].running_mean))
    told.append((net[3].weight, net[0].weight._version, net[1].running_mean._version))
    x = torch.ones(1, 2) / 3 * (rank + 1)
    for options in ({}, {"gradient_as_bucket_view": True}, {"find_unused_parameters": True}, {"static_graph": True}):
        ddp = DDP(Two(), **options)
        both = rank == 0 or "find_unused_parameters" not in options
        for _ in range(2):
            ddp(x, both=both).sum().backward()
        told.append((options, ddp.module.a.weight.grad, ddp.module.b.weight.grad))

    def tenth(state, bucket):
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda done: done.value()[0] / 10)

    for hook in (tenth, default_hooks.allreduce_hook, default_hooks.fp16_compress_hook,
                 default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook)):
        ddp = DDP(Two())
        ddp.register_comm_hook(None, hook)
        ddp(x).sum().backward()
        told.append((hook.__name__, ddp.module.a.weight.grad))
    with ddp.no_sync():
        ddp(x).sum().backward()
    told.append(ddp.module.a.weight.grad)
    everyone = [None] * size if rank == 0 else None
    dist.gather_object([f"{rank}: {each}" for each in told], everyone)
    if rank == 0:
        print("\n".join(line for lines in everyone for line in lines))
    dist.destroy_process_group()


if __name__ == "__main__":
    alone()
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(train, (2, folder + "/store"), nprocs=2)
