"""``torch.nn``: modules, their functions, and how parameters start."""

from __future__ import annotations

from stridescope.engine.torch.nn import functional, init, modules, parameter, utils
from stridescope.engine.torch.nn.parameter import Buffer, Parameter
from stridescope.engine.torch.nn.utils import parametrizations, parametrize, weight_norm

for _name in modules.__all__:
    globals()[_name] = getattr(modules, _name)
for _name in ("weight_norm", "remove_weight_norm", "spectral_norm", "remove_spectral_norm"):
    setattr(utils, _name, getattr(weight_norm, _name))
del parametrizations, parametrize, weight_norm
