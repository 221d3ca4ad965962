"""``torch.nn.modules``: all modules, by name."""

from __future__ import annotations

from stridescope.engine.torch.nn.modules import (
    activation,
    container,
    conv,
    dropout,
    flatten,
    linear,
    loss,
    module,
    pooling,
)
from stridescope.engine.torch.nn.modules.module import Module

PARTS = (module, linear, container, activation, conv, loss, pooling, dropout, flatten)
__all__ = []
for _part in PARTS:
    for _name, _value in list(vars(_part).items()):
        if isinstance(_value, type) and issubclass(_value, Module) and not _name.startswith("_"):
            globals()[_name] = _value
            __all__ += [_name]
