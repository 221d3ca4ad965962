"""A linear layer and its cross entropy in one module, and the options for working in pieces."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from stridescope.engine.dtype import bfloat16, dtype, float16, float32, float64
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn.modules.linear import Linear
from stridescope.engine.torch.nn.modules.loss import _WeightedLoss

POLICIES = ("auto", "accurate", "balanced", "compact")
_NARROW = (float16, bfloat16)


@dataclasses.dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """How PyTorch computes the loss in pieces of the batch; raises ValueError for values that mean nothing.

    The engine computes the loss whole, so these change no numbers here.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: dtype | None = None

    def __post_init__(self) -> None:
        if self.acc_policy not in POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method not in (None, "auto"):
            name, colon, factor = str(self.chunking_method).partition(":")
            if name != "aspect_ratio" or (colon and not (factor.isdigit() and int(factor) > 0)):
                raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if self.acc_dtype not in (None, float16, bfloat16, float32, float64):
            raise ValueError(
                "acc_dtype must be one of {None, torch.float16, torch.bfloat16, torch.float32, torch.float64}, got "
                f"{self.acc_dtype!r}. Pass acc_dtype=None to let the op pick automatically."
            )

    def _compute_batch_chunk_size(
        self, num_batches: int, in_features: int, num_classes: int, method: str | None = None
    ) -> int:
        """Rows of a piece such that its logits take about as much memory as the whole input."""
        _, _, factor = str(method or self.chunking_method).partition(":")
        target = math.ceil(num_batches / math.ceil(num_classes / in_features))
        return min((1 << (target - 1).bit_length()) // int(factor or 1), num_batches)

    def _adjust(
        self, num_batches: int, in_features: int, num_classes: int, dtype: Any, device: Any = None
    ) -> LinearCrossEntropyOptions:
        """The options with every ``auto`` and None replaced; raises ValueError when two of them contradict."""
        narrow = device is not None and device.type in ("cpu", "cuda") and dtype in _NARROW
        slow = narrow and device.type == "cpu"
        policy, method, size = self.acc_policy, self.chunking_method, self.batch_chunk_size
        if method == "auto":
            method = None if size is not None else "aspect_ratio" if slow else "aspect_ratio:2"
        rows = num_batches if size is None else min(size, num_batches)
        if method is not None:
            rows = self._compute_batch_chunk_size(num_batches, in_features, num_classes, method)
            if size not in (None, rows):
                raise ValueError(
                    f"batch_chunk_size (={size}) and chunking_method ('{method}') give different chunk sizes ({size} "
                    f"vs {rows}); pass only one."
                )
        wide = float32 if narrow and policy == "auto" else dtype
        if policy == "auto":
            policy = "accurate" if slow else "compact"
        return dataclasses.replace(
            self,
            acc_policy=policy,
            chunking_method=method,
            batch_chunk_size=max(1, rows),
            acc_dtype=self.acc_dtype or wide,
        )


class LinearCrossEntropyLoss(_WeightedLoss):
    """The cross entropy of the input after a linear layer of its own; raises RuntimeError for bad settings."""

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1.0:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing
        self.num_classes, self.out_features, self.options = num_classes, out_features, options
        total = math.prod(out_features, start=num_classes)
        self.linear = Linear(in_features, total, bias=bias, device=device, dtype=dtype)

    def forward(self, input: Tensor, target: Tensor) -> Any:
        """Call linear_cross_entropy."""
        shape, bias = (self.num_classes, *self.out_features), self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape((*shape, self.linear.in_features)),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


LinearCrossEntropyLoss.__module__ = "torch.nn.modules.loss"
LinearCrossEntropyOptions.__module__ = "torch.nn.modules.linear_cross_entropy_options"
