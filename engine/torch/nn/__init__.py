"""``torch.nn``: modules, their functions, and how parameters start."""

from __future__ import annotations

from typing import Any

from stridescope.engine.torch._not_yet import missing_from
from stridescope.engine.torch.nn import functional, init, modules, parallel, parameter, utils
from stridescope.engine.torch.nn.modules.linear_cross_entropy import LinearCrossEntropyOptions
from stridescope.engine.torch.nn.parallel import DataParallel
from stridescope.engine.torch.nn.parameter import Buffer, Parameter
from stridescope.engine.torch.nn.uninitialized import UninitializedBuffer, UninitializedParameter
from stridescope.engine.torch.nn.utils import parametrizations, parametrize, weight_norm

for _name in modules.__all__:
    globals()[_name] = getattr(modules, _name)
for _name in ("weight_norm", "remove_weight_norm", "spectral_norm", "remove_spectral_norm"):
    setattr(utils, _name, getattr(weight_norm, _name))
del parametrizations, parametrize, weight_norm


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """The arguments among ``device``, ``dtype`` and ``memory_format``; raises TypeError when there are others."""
    if kwargs is None:
        return {}
    simple = {"device", "dtype", "memory_format"}
    expected = simple | {"factory_kwargs"}
    if not kwargs.keys() <= expected:
        raise TypeError(f"unexpected kwargs {kwargs.keys() - expected}")
    found = dict(kwargs.get("factory_kwargs", {}))
    for name in simple & kwargs.keys():
        if name in found:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        found[name] = kwargs[name]
    return found


__getattr__ = missing_from("torch.nn", __name__)
