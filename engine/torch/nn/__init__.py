"""``torch.nn``: modules, their functions, and how parameters start."""

from __future__ import annotations

from stridescope.engine.torch.nn import functional, init, modules, parameter, utils
from stridescope.engine.torch.nn.parameter import Buffer, Parameter

for _name in modules.__all__:
    globals()[_name] = getattr(modules, _name)
