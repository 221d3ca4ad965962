"""``torch.nn.functional``: the functions behind the modules."""

from __future__ import annotations

from stridescope.engine.dispatch.parser import Function as _Function
from stridescope.engine.ops import FUNCTIONS as _FUNCTIONS
from stridescope.engine.torch._not_yet import missing_from as _missing_from
from stridescope.engine.torch.nn.functional import activation as _activation
from stridescope.engine.torch.nn.functional import alignment as _alignment
from stridescope.engine.torch.nn.functional import attention as _attention
from stridescope.engine.torch.nn.functional import loss as _loss
from stridescope.engine.torch.nn.functional import margins as _margins
from stridescope.engine.torch.nn.functional import normalization as _normalization
from stridescope.engine.torch.nn.functional import pooling as _pooling
from stridescope.engine.torch.nn.functional import sparse as _sparse
from stridescope.engine.torch.nn.functional import vision as _vision
from stridescope.engine.torch.nn.functional._native import NATIVE as _NATIVE
from stridescope.engine.torch.nn.functional._native import TORCH as _TORCH

# Handed on as they are.
for _name in (
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "bilinear",
    "cosine_similarity", "pairwise_distance", "pdist",
):  # fmt: skip
    globals()[_name] = _TORCH[_name]
linear = _NATIVE["linear"]
globals().update(_FUNCTIONS["torch.nn.functional"])
for _part in (_activation, _alignment, _loss, _margins, _pooling, _normalization, _sparse, _vision, _attention):
    for _name, _value in list(vars(_part).items()):
        if not _name.startswith("_") and (
            isinstance(_value, _Function) or getattr(_value, "__module__", "") == _part.__name__
        ):
            globals()[_name] = _value


__getattr__ = _missing_from("torch.nn.functional")
