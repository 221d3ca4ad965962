"""Batch norm layers."""

from __future__ import annotations

import sys
from typing import Any, ClassVar

from stridescope.engine.dtype import int64
from stridescope.engine.ops import FUNCTIONS
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn import init
from stridescope.engine.torch.nn.modules._factory import named_as, parameter
from stridescope.engine.torch.nn.modules.module import Module


class _NormBase(Module):
    """What batch and instance norms share: scale, shift and running statistics."""

    _version = 2

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, parameter((num_features,), device, dtype) if wanted else None)
        self._register_statistics(device, dtype)
        self.reset_parameters()

    def _register_statistics(self, device: Any, dtype: Any) -> None:
        torch = FUNCTIONS["torch"]
        if self.track_running_stats:
            size = (self.num_features,)
            self.register_buffer("running_mean", torch["zeros"](size, device=device, dtype=dtype))
            self.register_buffer("running_var", torch["ones"](size, device=device, dtype=dtype))
            self.register_buffer("num_batches_tracked", torch["scalar_tensor"](0, dtype=int64, device=device))
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)

    def reset_running_stats(self) -> None:
        """Mean zero, variance one, no batch seen."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Scale by one, shift by zero."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        version = local_metadata.get("version", None)
        key = f"{prefix}num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            count = self.num_batches_tracked
            state_dict[key] = FUNCTIONS["torch"]["scalar_tensor"](0, dtype=int64) if count is None else count
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    """A batch norm; ``_dims`` are the numbers of dims that it takes, ``_wanted`` how its error says so."""

    _dims: ClassVar[tuple[int, ...]] = ()
    _wanted: ClassVar[str] = ""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in self._dims:
            raise ValueError(f"expected {self._wanted} input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        """Call batch_norm with the statistics of the batch while training, the running ones otherwise."""
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        fresh = self.training or (self.running_mean is None and self.running_var is None)
        kept = not self.training or self.track_running_stats
        return F.batch_norm(  # type: ignore[no-any-return]
            input,
            self.running_mean if kept else None,
            self.running_var if kept else None,
            self.weight,
            self.bias,
            fresh,
            factor,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Batch norm of vectors or sequences."""

    _dims, _wanted = (2, 3), "2D or 3D"


class BatchNorm2d(_BatchNorm):
    """Batch norm of images."""

    _dims, _wanted = (4,), "4D"


class BatchNorm3d(_BatchNorm):
    """Batch norm of volumes."""

    _dims, _wanted = (5,), "5D"


class SyncBatchNorm(_BatchNorm):
    """Batch norm over the processes of a group; with one process, a batch norm."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        """Call batch_norm; in a group of several processes, raise NotImplementedError while training.

        Raises ValueError for a batch on the CPU while training in a group, as PyTorch does.
        """
        groups = sys.modules.get("stridescope.engine.torch.distributed")
        if self.training and groups is not None and groups.is_initialized():
            if input.device.type == "cpu":
                raise ValueError("SyncBatchNorm expected input tensor to be on GPU or XPU or privateuseone")
            if groups.get_world_size(self.process_group) > 1:
                raise NotImplementedError("torch.nn.SyncBatchNorm over several processes is not in Stridescope yet")
        return super().forward(input)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Return the module with every batch norm in it replaced by one of this class that has its parameters."""
        made = module
        if isinstance(module, _BatchNorm):
            made = cls(
                module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats,
                process_group, bias=not module.affine or module.bias is not None,
            )  # fmt: skip
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked", "training"):
                setattr(made, name, getattr(module, name))
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made


named_as("batchnorm", globals())
