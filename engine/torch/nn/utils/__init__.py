"""``torch.nn.utils``: clipping gradients, parameters as one vector, sequences of different lengths, pruning, fusing."""

from __future__ import annotations

from typing import Any

from stridescope.engine.torch._not_yet import missing_from
from stridescope.engine.torch.nn.utils import clip_grad, convert_parameters, rnn
from stridescope.engine.torch.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from stridescope.engine.torch.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters

_LAZY = {
    "convert_conv2d_weight_memory_format": "memory_format", "convert_conv3d_weight_memory_format": "memory_format",
    "fuse_conv_bn_eval": "fusion", "fuse_conv_bn_weights": "fusion", "fuse_linear_bn_eval": "fusion",
    "fuse_linear_bn_weights": "fusion", "skip_init": "init",
}  # fmt: skip
_submodule = missing_from("torch.nn.utils", __name__)


def __getattr__(name: str) -> Any:
    """Names of files that need the modules, which need this package: loaded when asked for."""
    return getattr(_submodule(_LAZY[name]), name) if name in _LAZY else _submodule(name)
