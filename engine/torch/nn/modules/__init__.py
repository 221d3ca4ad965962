"""``torch.nn.modules``: all modules, by name."""

from __future__ import annotations

from stridescope.engine.torch._elsewhere import file_of
from stridescope.engine.torch._not_yet import missing_from
from stridescope.engine.torch.nn.modules import (
    activation,
    adaptive,
    attention,
    batchnorm,
    container,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    instancenorm,
    lazy,
    linear,
    linear_cross_entropy,
    loss,
    margins,
    module,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    rnn,
    sparse,
    transformer,
    upsampling,
)
from stridescope.engine.torch.nn.modules.linear_cross_entropy import LinearCrossEntropyOptions
from stridescope.engine.torch.nn.modules.module import Module
from stridescope.engine.torch.nn.modules.script_constants import set_constants

PARTS = (
    module, linear, container, activation, attention, conv, loss, margins, pooling, dropout, flatten, batchnorm,
    instancenorm, normalization, sparse, padding, distance, fold, pixelshuffle, upsampling, rnn, transformer, adaptive,
    lazy, linear_cross_entropy,
)  # fmt: skip
__getattr__ = missing_from("torch.nn.modules")

__all__ = []
for _part in PARTS:
    for _name, _value in list(vars(_part).items()):
        if isinstance(_value, type) and issubclass(_value, Module) and not _name.startswith("_"):
            globals()[_name] = _value
            __all__ += [_name] if _name not in __all__ else []

set_constants(globals())
# What PyTorch has in one file and lies in two here.
activation.MultiheadAttention = attention.MultiheadAttention  # type: ignore[attr-defined]
for _kind in (*vars(margins).values(), linear_cross_entropy.LinearCrossEntropyLoss):
    if isinstance(_kind, type) and issubclass(_kind, Module):
        setattr(loss, _kind.__name__, _kind)
for _lazy in lazy.LAZY:
    setattr(globals()[_lazy.__module__.rpartition(".")[2]], _lazy.__name__, _lazy)
file_of(f"{__name__}.channelshuffle", {"ChannelShuffle": globals()["ChannelShuffle"]})
file_of(f"{__name__}.linear_cross_entropy_options", {"LinearCrossEntropyOptions": LinearCrossEntropyOptions})
