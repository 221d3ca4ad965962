"""What ``import torch`` gives a user's script: PyTorch's names over the engine."""

from __future__ import annotations

import importlib
import math
import sys
from typing import Any

from stridescope.engine.autograd.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from stridescope.engine.device import device
from stridescope.engine.devices.cuda_errors import AcceleratorError
from stridescope.engine.devices.out_of_memory import OutOfMemoryError
from stridescope.engine.dispatch.launches import watch_devices as _watch_devices
from stridescope.engine.dispatch.torch_function import Overrides
from stridescope.engine.dtype import BY_NAME, dtype
from stridescope.engine.layout import (
    OTHER_LAYOUTS,
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    strided,
)
from stridescope.engine.ops import FUNCTIONS
from stridescope.engine.ops import distance as _distance
from stridescope.engine.ops import exchange as _exchange
from stridescope.engine.ops import flat_places as _flat_places
from stridescope.engine.ops import joining as _joining
from stridescope.engine.ops import linalg_lu as _linalg_lu
from stridescope.engine.ops import norms as _norms
from stridescope.engine.ops import old_types as _old_types
from stridescope.engine.ops import products as _products
from stridescope.engine.ops import removed as _removed
from stridescope.engine.ops import searching as _searching
from stridescope.engine.ops import selecting as _selecting
from stridescope.engine.ops import spectral as _spectral
from stridescope.engine.ops import views_shape as _views_shape
from stridescope.engine.ops import views_split as _views_split
from stridescope.engine.ops import windows as _windows
from stridescope.engine.ops.from_data import as_tensor, asarray, frombuffer, tensor
from stridescope.engine.ops.generator import Generator, default_generator
from stridescope.engine.ops.storage_objects import LEGACY, TypedStorage, UntypedStorage
from stridescope.engine.ops.to_python import from_numpy
from stridescope.engine.printed import get_printoptions, printoptions, set_printoptions
from stridescope.engine.tensor import Size, Tensor
from stridescope.engine.torch import (
    _absent,
    _not_yet,
    _queries,
    _settings,
    autograd,
    serialization,
    storage,
    torch_version,
    version,
)
from stridescope.engine.torch._methods_only import METHODS_ONLY
from stridescope.engine.torch.amp import autocast
from stridescope.engine.torch.amp import state as _autocast_state
from stridescope.engine.torch.autograd import top_level as _top_level
from stridescope.engine.torch.numeric_limits import finfo, iinfo
from stridescope.engine.torch.random import (
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from stridescope.engine.torch.serialization import load, save
from stridescope.engine.torch.torch_version import __version__
from stridescope.engine.warn import warn as _warn

_watch_devices()
globals().update({name: function for name, function in FUNCTIONS["torch"].items() if name not in METHODS_ONLY})
globals().update(_views_shape.FUNCTIONS)
globals().update(_exchange.FUNCTIONS)
globals().update(_joining.FUNCTIONS)
globals().update(_selecting.FUNCTIONS)
globals().update(_windows.FUNCTIONS)
for _module in (_norms, _distance, _searching, _flat_places, _products, _linalg_lu, _spectral, _removed, _views_split):
    globals().update(_module.FUNCTIONS)
globals().update(_queries.FUNCTIONS)
globals().update(_settings.FUNCTIONS)
globals().update(_top_level.FUNCTIONS)
globals().update(_autocast_state.FUNCTIONS)
globals().update(LEGACY)
Storage = LEGACY["FloatStorage"]
globals().update(_old_types.CPU_TYPES)
globals().update(BY_NAME)
globals().update({_layout.name: _layout for _layout in OTHER_LAYOUTS})
bool = BY_NAME["bool"]
pi, e, inf, nan, newaxis = math.pi, math.e, math.inf, math.nan, None
legacy_contiguous_format = contiguous_format
has_lapack = has_mkl = has_openmp = has_spectral = True  # as in PyTorch's CPU build
globals().update({name: getattr(Tensor, name) for name in ("detach_", "as_strided_")})
for _kind in (dtype, device):
    _kind.__module__ = "torch"


Overrides.at_first.append(lambda: importlib.import_module(f"{__name__}.overrides").install())
Overrides.at_first_dispatch.append(lambda: importlib.import_module(f"{__name__}._dispatch_stack").begin_classes())

# Modules that are loaded when a script first asks for them.
SUBMODULES = (
    "_C", "__config__", "__future__", "_dynamo", "accelerator", "amp", "backends", "compiler", "cpu", "cuda",
    "distributed", "distributions", "export", "fft", "func", "functional", "futures", "fx", "jit", "library",
    "linalg", "masked", "multiprocessing", "nn", "onnx", "ops", "optim", "overrides", "profiler", "random",
    "return_types", "serialization", "signal", "special", "testing", "types", "utils",
)  # fmt: skip
# Names whose module is loaded when a script first asks for them.
LATER = {
    "load": "serialization", "save": "serialization", "compile": "compiler", "SymInt": "_dynamo.symbols",
    "vmap": "func", "GradScaler": "amp",
    "Event": "streams", "Stream": "streams", "svd_lowrank": "_lowrank", "pca_lowrank": "_lowrank",
}  # fmt: skip


# What the build can do, by the names that it was asked for once.
_OLDER = {
    "has_cuda": "backends.cuda.is_built",
    "has_cudnn": "backends.cudnn.is_available",
    "has_mkldnn": "backends.mkldnn.is_available",
    "has_mps": "backends.mps.is_built",
}


def __getattr__(name: str) -> Any:
    if name in LATER:
        return getattr(importlib.import_module(f"{__name__}.{LATER[name]}"), name)
    if name == "torch":  # the module has its own name, as PyTorch's has
        return sys.modules[__name__]
    if name in SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _absent.MODULES:
        return _absent.absent_module(name)
    if name in _OLDER:
        _warn(f"'{name}' is deprecated, please use 'torch.{_OLDER[name]}()'")
        backend, _, question = _OLDER[name].removeprefix("backends.").partition(".")
        return getattr(importlib.import_module(f"{__name__}.backends.{backend}"), question)()
    if name in _not_yet.FUNCTIONS:
        return _not_yet.refusing("torch", name)
    if name in _not_yet.NAMES["torch"]:
        raise _not_yet.refusal("torch", name)
    if name in _not_yet.DTYPES:
        raise _not_yet.dtype_refusal(name)
    raise AttributeError(f"module 'torch' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [
        name
        for name in globals()
        if name not in ("annotations", "_queries", "_kind", "_layout", "importlib", "math", "joining", "views_shape")
    ]


__all__ = [
    "OutOfMemoryError", "Size", "Tensor", "TypedStorage", "UntypedStorage", "__version__", "autograd",
    "channels_last", "channels_last_3d", "contiguous_format", "device", "dtype", "enable_grad", "finfo",
    "from_numpy", "get_printoptions", "iinfo", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled",
    "layout", "memory_format", "no_grad", "preserve_format", "printoptions", "set_grad_enabled", "set_printoptions",
    "storage", "strided", "tensor", "torch_version", "version",
]  # fmt: skip
