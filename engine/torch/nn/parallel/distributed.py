"""``DistributedDataParallel``: the same module in several processes, whose gradients are averaged inside backward."""

from __future__ import annotations

import contextlib
import copy
import inspect
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from stridescope.engine import torch
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch import _trees, distributed
from stridescope.engine.torch.autograd.function import Function
from stridescope.engine.torch.autograd.variable import Variable
from stridescope.engine.torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from stridescope.engine.torch.distributed.grad_bucket import BuiltinCommHookType, GradBucket
from stridescope.engine.torch.distributed.groups import default_group
from stridescope.engine.torch.distributed.reducer import Reducer
from stridescope.engine.torch.futures import Future
from stridescope.engine.torch.nn.modules.batchnorm import SyncBatchNorm
from stridescope.engine.torch.nn.modules.module import Module
from stridescope.engine.torch.nn.parallel import sameness
from stridescope.engine.torch.nn.parallel.data_parallel import moved
from stridescope.engine.torch.nn.uninitialized import UninitializedParameter
from stridescope.engine.warn import warn

MIB = 1 << 20
FIRST_BUCKET, DEFAULT_BUCKET = MIB, 25 * MIB
_ON_GPUS = "BF16 all reduce communication hook required CUDA 11+ and NCCL 2.10+ or XPU and XCCL"
_BROADCAST_BUFFERS = (
    "`broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead. IMPORTANT: unlike "
    "`broadcast_buffers=False`, `forward_sync_buffers=False` still syncs buffers at init. If you rely on buffers NOT "
    "being synced at init (e.g. rank-local buffers), keep using `broadcast_buffers=False` until `init_sync_buffers` is "
    "available."
)
_BOTH = (
    "Both `broadcast_buffers` and `forward_sync_buffers` were specified. `broadcast_buffers` is deprecated and its "
    "value is ignored when `forward_sync_buffers` is provided."
)
_OTHERS = ("delay_all_reduce_named_params", "param_to_hook_all_reduce", "mixed_precision", "device_mesh")


class _DDPSink(Function):
    """Stands behind the outputs, so that some of them may get no gradient, and the end of a first pass is seen."""

    @staticmethod
    def forward(ctx: Any, owner: Any, *inputs: Any) -> Any:
        """Give clones."""
        ctx.set_materialize_grads(False)
        ctx.owner = owner
        return tuple(each.clone() if isinstance(each, Tensor) else each for each in inputs)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Give the gradients on; in a static graph's first pass, send all when it is over."""
        owner = ctx.owner()
        if owner.static_graph and not owner._first_pass_seen:
            owner._first_pass_seen = True
            Variable._execution_engine.queue_callback(owner.reducer.finish_static)
        return (None, *grad_outputs)


class DistributedDataParallel(Module):
    """A module whose gradients are averaged over the ranks of a group while backward runs.

    All ranks begin with rank 0's parameters and buffers. Gradients travel in buckets of at most ``bucket_cap_mb`` MiB
    (25 by default, the first one 1), in the order in which backward makes them.

    Args:
        module: the module; each rank has its own.
        device_ids: the one GPU that it is on; None for a module on the CPU.
        broadcast_buffers: older name of ``forward_sync_buffers``.
        init_sync: begin with rank 0's parameters.
        process_group: the ranks, by default all.
        bucket_cap_mb: how many MiB travel together.
        find_unused_parameters: look in every forward pass which parameters take part, and expect no others.
        gradient_as_bucket_view: let ``.grad`` be a view of the bucket.
        static_graph: promise that every iteration is alike.
        bucket_cap_mb_list: MiB of each bucket.
        forward_sync_buffers: give all ranks rank 0's buffers before each forward pass (by default).

    Raises:
        RuntimeError: no parameter requires grad, or the ranks' modules differ.
        ValueError: there is no group, or the devices do not fit.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        *,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[float] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
        **others: Any,
    ) -> None:
        super().__init__()
        _refuse(others)
        self.process_group = process_group or default_group()
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(name, each) for name, each in module.named_parameters() if name not in self.parameters_to_ignore]
        self._module_parameters = [parameter for _, parameter in named]
        self.module, self.dim, self.static_graph = module, dim, False
        self._check_parameters()
        self._set_devices(device_ids, output_device)
        self._set_buffers(broadcast_buffers, forward_sync_buffers)
        if check_reduction:
            warn(
                "The `check_reduction` argument in `DistributedDataParallel` module is deprecated. Please avoid using "
                "it.",
                FutureWarning,
            )
        self.find_unused_parameters, self.gradient_as_bucket_view = find_unused_parameters, gradient_as_bucket_view
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self._set_limits(bucket_cap_mb, bucket_cap_mb_list)
        if init_sync:
            self._begin_alike()
        self._make_reducer()
        if static_graph:
            self._set_static_graph()

    # ---- construction -----------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        parameters = self._module_parameters
        if not any(parameter.requires_grad for parameter in parameters):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
                "gradient."
            )
        kinds = {parameter.device.type for parameter in parameters}
        if len(kinds) != 1:
            raise ValueError(
                "DistributedDataParallel's input module must be on the same type of devices, but input module "
                f"parameters locate in {kinds}."
            )
        if any(isinstance(parameter, UninitializedParameter) for parameter in parameters):
            raise RuntimeError(
                "Modules with uninitialized parameters can't be used with `DistributedDataParallel`. Run a dummy "
                "forward pass to correctly initialize the modules"
            )

    def _set_devices(self, device_ids: Any, output_device: Any) -> None:
        devices = {parameter.device for parameter in self._module_parameters}
        self.device_type, self.is_multi_device_module = self._module_parameters[0].device.type, len(devices) > 1
        self.device = self._module_parameters[0].device
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        self.device_ids = self.output_device = None
        if not device_ids or self.device_type == "cpu" or self.is_multi_device_module:
            if device_ids or output_device:
                raise ValueError(
                    "DistributedDataParallel device_ids and output_device arguments only work with "
                    "single-device/multiple-device GPU modules or CPU modules, but got device_ids "
                    f"{device_ids}, output_device {output_device}, and module parameters {devices}."
                )
            return
        self.device_ids = [_index(device_ids[0])]
        self.output_device = _index(device_ids[0] if output_device is None else output_device)

    def _set_buffers(self, broadcast: bool | None, synced: bool | None) -> None:
        if broadcast is not None:
            warn(_BROADCAST_BUFFERS if synced is None else _BOTH, FutureWarning)
        older = True if broadcast is None else broadcast
        self.forward_sync_buffers = older if synced is None else synced
        self._begins_with_buffers = older if synced is None else True

    @property
    def broadcast_buffers(self) -> bool:
        """The older name of ``forward_sync_buffers``."""
        return bool(self.forward_sync_buffers)

    @broadcast_buffers.setter
    def broadcast_buffers(self, value: bool) -> None:
        self.forward_sync_buffers = value

    def _set_limits(self, cap: float | None, caps: list[float] | None) -> None:
        self.bucket_bytes_cap = int((max(caps) if caps else 25 if cap is None else cap) * MIB)
        self.broadcast_bucket_size = 250 * MIB
        self._own_limits = own = [int(each * MIB) for each in caps or ()]
        default = [FIRST_BUCKET, self.bucket_bytes_cap] if cap is None else [self.bucket_bytes_cap]
        self._later_limits = own or default

    def _synced_buffers(self) -> dict[str, Any]:
        """The buffers that are the same on all ranks; looked for anew, as the module may set others."""
        named = self.module.named_buffers()
        self.named_module_buffers = {name: each for name, each in named if name not in self.parameters_to_ignore}
        self.modules_buffers = list(self.named_module_buffers.values())
        return self.named_module_buffers

    def _begin_alike(self) -> None:
        sameness.check(self._module_parameters, self.process_group)
        buffers = self._synced_buffers().values() if self._begins_with_buffers else ()
        sameness.take_over([*self._module_parameters, *buffers], self.process_group)

    def _make_reducer(self) -> None:
        known = {id(each): name for name, each in self.module.named_parameters()}
        parameters = [(known[id(each)], each) for each in self._module_parameters if each.requires_grad]
        once = self.static_graph or not self.find_unused_parameters
        self.reducer = Reducer(
            parameters,
            self.process_group,
            [sys.maxsize] if once and not self._own_limits else self._later_limits,
            self._later_limits,
            self.find_unused_parameters,
            self.gradient_as_bucket_view,
        )
        self._first_pass_seen = self._has_rebuilt_buckets = False
        self._synced_buffers()
        if any(isinstance(each, SyncBatchNorm) for each in self.module.modules()) and self.device_type == "cpu":
            raise ValueError("SyncBatchNorm layers only work with GPU modules")

    def _set_static_graph(self) -> None:
        """Promise that every iteration is alike."""
        if self.static_graph:
            warn("You've set static_graph to be True, no need to set it again.")
            return
        self.static_graph = True
        self.reducer.set_static_graph()
        if self.find_unused_parameters:
            warn(
                "You passed find_unused_parameters=true to DistributedDataParallel, `_set_static_graph` will detect "
                "unused parameters automatically, so you do not need to set find_unused_parameters=true, just be sure "
                "these unused parameters will not change during training loop while calling `_set_static_graph`."
            )

    def __getstate__(self) -> dict[str, Any]:
        if self.process_group is not distributed.group.WORLD:
            raise RuntimeError(
                "DDP Pickling/Unpickling are only supported when using DDP with the default process group. That is, "
                "when you have called init_process_group and have not passed process_group argument to DDP constructor"
            )
        state = copy.copy(self.__dict__)
        for name in ("process_group", "reducer"):
            del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.process_group = default_group()
        super().__setstate__(state)
        self._make_reducer()
        if self.static_graph:
            self.reducer.set_static_graph()

    # ---- a pass -----------------------------------------------------------------------------------------------------

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module, and expect a backward pass from what it gives."""
        inputs, kwargs = self._pre_forward(*inputs, **kwargs)
        return self._post_forward(self.module(*inputs, **kwargs))

    def _pre_forward(self, *inputs: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if torch.is_grad_enabled() and self.reducer.rebuild():
            self._has_rebuilt_buckets = True
        if self.will_sync_module_buffers():
            sameness.write_over(list(self._synced_buffers().values()), self.process_group)
        if not self.device_ids:
            return inputs, kwargs
        place = torch.device("cuda", self.device_ids[0])
        return tuple(moved(each, place) for each in inputs), {name: moved(each, place) for name, each in kwargs.items()}

    def will_sync_module_buffers(self) -> bool:
        """Whether the next forward pass begins with rank 0's buffers."""
        return bool(self.require_forward_param_sync and self.forward_sync_buffers and self.modules_buffers)

    def _post_forward(self, output: Any) -> Any:
        syncs = torch.is_grad_enabled() and self.require_backward_grad_sync
        self.require_forward_param_sync = syncs
        looks = self.find_unused_parameters and not self.static_graph
        if syncs:
            leaves = _trees.flatten(output)[0] if looks else []
            self.reducer.prepare([each for each in leaves if isinstance(each, Tensor) and each._requires_grad])
        first = self.static_graph and not self._first_pass_seen
        return self._through_sink(output) if looks or first else output

    def _through_sink(self, output: Any) -> Any:
        leaves, rebuilt = _trees.flatten(output)
        passed = _DDPSink.apply(weakref.ref(self), *leaves)
        kept = [
            each if isinstance(each, Tensor) and each.grad_fn is None else passed[place]
            for place, each in enumerate(leaves)
        ]
        return rebuilt(kept)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside the block gradients are only added up on this rank; the first pass after it averages the sums."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def train(self, mode: bool = True) -> DistributedDataParallel:
        """Set the mode, of the module too."""
        super().train(mode)
        return self

    def join(self, *options: Any, **named: Any) -> NoReturn:
        """Raises NotImplementedError: here all ranks must have as many batches."""
        raise NotImplementedError("torch.nn.parallel.DistributedDataParallel.join is not in Stridescope yet")

    # ---- hooks ------------------------------------------------------------------------------------------------------

    def register_comm_hook(self, state: Any, hook: Callable[..., Any]) -> None:
        """Let ``hook(state, bucket)`` send each bucket; it returns a Future of the buffer's new values.

        Raises:
            TypeError: the hook cannot be called, or needs GPUs.
            ValueError: its annotations are others.
            RuntimeError: there is one.
        """
        _check_hook(hook)
        self.reducer.register_hook(state, hook)

    def _register_builtin_comm_hook(self, comm_hook_type: Any) -> None:
        hooks = {
            BuiltinCommHookType.ALLREDUCE: default_hooks.allreduce_hook,
            BuiltinCommHookType.FP16_COMPRESS: default_hooks.fp16_compress_hook,
        }
        self.reducer.register_hook(self.process_group, hooks[comm_hook_type])

    def _remove_autograd_hooks(self) -> None:
        self.reducer.remove_hooks()

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, params_and_buffers_to_ignore: Any) -> None:
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore


def _refuse(others: dict[str, Any]) -> None:
    for name, value in others.items():
        if name not in _OTHERS:
            raise TypeError(f"DistributedDataParallel.__init__() got an unexpected keyword argument '{name}'")
        if value is not None:
            raise NotImplementedError(
                f"torch.nn.parallel.DistributedDataParallel with {name} is not in Stridescope yet"
            )  # fmt: skip


def _index(place: Any) -> int:
    return place if isinstance(place, int) else torch.device(place).index or 0


def _check_hook(hook: Any) -> None:
    if not callable(hook):
        raise TypeError("Communication hook must be callable.")
    signature = inspect.signature(hook)
    if signature.parameters["bucket"].annotation not in (inspect.Parameter.empty, GradBucket, "GradBucket",
                                                         "dist.GradBucket"):  # fmt: skip
        raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
    returned: Any = signature.return_annotation
    if returned != inspect.Signature.empty and returned != Future[Tensor] and not isinstance(returned, str):
        raise ValueError("Communication hook: return annotation should be torch.futures.Future[torch.Tensor].")
    if getattr(hook, "__name__", "") in ("bf16_compress_hook", "bf16_compress_wrapper_hook"):
        _refuse_bf16()


def _refuse_bf16() -> NoReturn:
    raise TypeError(_ON_GPUS)


DistributedDataParallel.__module__ = "torch.nn.parallel.distributed"
