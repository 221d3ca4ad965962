"""Instance norm layers."""

from __future__ import annotations

from typing import Any, ClassVar

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn.modules._factory import named_as
from stridescope.engine.torch.nn.modules.batchnorm import _NormBase
from stridescope.engine.warn import warn


class _InstanceNorm(_NormBase):
    """An instance norm; ``_spatial`` is its number of dims beside batch and channels."""

    _spatial: ClassVar[int]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _get_no_batch_dim(self) -> int:
        return self._spatial + 1

    def _check_input_dim(self, input: Tensor) -> None:
        low = self._spatial + 1
        if input.dim() not in (low, low + 1):
            raise ValueError(f"expected {low}D or {low + 1}D input (got {input.dim()}D input)")

    def _apply_instance_norm(self, input: Tensor) -> Tensor:
        return F.instance_norm(  # type: ignore[no-any-return]
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )

    def forward(self, input: Tensor) -> Tensor:
        """Call instance_norm; an input without a batch dim gets one for the call."""
        self._check_input_dim(input)
        channels = input.dim() - self._spatial - 1
        if input.size(channels) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={channels} to match num_features ({self.num_features}), but got: "
                    f"{input.size(channels)}."
                )
            warn(
                f"input's size at dim={channels} does not match num_features. You can silence this warning by not "
                "passing in num_features, which is not used because affine=False"
            )
        if input.dim() == self._spatial + 1:
            return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)  # type: ignore[no-any-return]
        return self._apply_instance_norm(input)


class InstanceNorm1d(_InstanceNorm):
    """Instance norm of sequences."""

    _spatial = 1


class InstanceNorm2d(_InstanceNorm):
    """Instance norm of images."""

    _spatial = 2


class InstanceNorm3d(_InstanceNorm):
    """Instance norm of volumes."""

    _spatial = 3


named_as("instancenorm", globals())
