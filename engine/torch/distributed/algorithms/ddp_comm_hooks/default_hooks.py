"""Hooks that average buckets, as they are or in half the bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stridescope.engine import torch
from stridescope.engine.torch import distributed
from stridescope.engine.torch.distributed.grad_bucket import GradBucket
from stridescope.engine.torch.distributed.groups import default_group
from stridescope.engine.torch.futures import Future

Hook = Callable[[Any, GradBucket], Any]


def _averaged(group: Any, tensor: Any) -> Future[Any]:
    """The future of the average over the ranks, written into the tensor."""
    chosen = default_group() if group is None else group
    tensor.div_(chosen.size())
    work = distributed.all_reduce(tensor, group=chosen, async_op=True)
    assert work is not None
    return work.get_future().then(lambda done: done.value()[0])


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future[Any]:
    """Average the bucket: what DistributedDataParallel does without any hook."""
    return _averaged(process_group, bucket.buffer())


def _in_half(dtype: Any, process_group: Any, bucket: GradBucket) -> Future[Any]:
    buffer: Any = bucket.buffer()
    return _averaged(process_group, buffer.to(dtype)).then(lambda done: buffer.copy_(done.value()))


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Any]:
    """Average the bucket in float16."""
    return _in_half(torch.float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Any]:
    """Average the bucket in bfloat16."""
    return _in_half(torch.bfloat16, process_group, bucket)


def _wrapped(hook: Hook, dtype: Any) -> Hook:
    def around(state: Any, bucket: GradBucket) -> Any:
        own: Any = bucket.buffer()
        bucket.set_buffer(own.to(dtype))

        def back(done: Future[Any]) -> Any:
            own.copy_(done.value())
            return own

        return hook(state, bucket).then(back)

    return around


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """Let a hook have the bucket in float16."""
    wrapper = _wrapped(hook, torch.float16)
    wrapper.__name__ = "fp16_compress_wrapper_hook"
    return wrapper


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """Let a hook have the bucket in bfloat16."""
    wrapper = _wrapped(hook, torch.bfloat16)
    wrapper.__name__ = "bf16_compress_wrapper_hook"
    return wrapper


for _hook in (allreduce_hook, fp16_compress_hook, bf16_compress_hook, fp16_compress_wrapper, bf16_compress_wrapper):
    _hook.__module__ = "torch.distributed.algorithms.ddp_comm_hooks.default_hooks"
