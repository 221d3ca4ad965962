"""``torch.optim``: optimizers and learning rate schedules, with PyTorch's arithmetic in PyTorch's order."""

from __future__ import annotations

from stridescope.engine.torch._in_each import write_out
from stridescope.engine.torch._not_yet import missing_from
from stridescope.engine.torch.optim import lr_scheduler
from stridescope.engine.torch.optim._adafactor import Adafactor
from stridescope.engine.torch.optim._muon import Muon
from stridescope.engine.torch.optim.adadelta import Adadelta
from stridescope.engine.torch.optim.adagrad import Adagrad
from stridescope.engine.torch.optim.adam import Adam
from stridescope.engine.torch.optim.adamax import Adamax
from stridescope.engine.torch.optim.adamw import AdamW
from stridescope.engine.torch.optim.asgd import ASGD
from stridescope.engine.torch.optim.lbfgs import LBFGS
from stridescope.engine.torch.optim.nadam import NAdam
from stridescope.engine.torch.optim.optimizer import Optimizer
from stridescope.engine.torch.optim.radam import RAdam
from stridescope.engine.torch.optim.rmsprop import RMSprop
from stridescope.engine.torch.optim.rprop import Rprop
from stridescope.engine.torch.optim.sgd import SGD
from stridescope.engine.torch.optim.sparse_adam import SparseAdam

OPTIMIZERS = (
    Adadelta, Adafactor, Adagrad, Adam, AdamW, Adamax, ASGD, LBFGS, Muon, NAdam, RAdam, RMSprop, Rprop, SGD, SparseAdam,
)  # fmt: skip

for _kind in (Optimizer, *OPTIMIZERS):
    _kind.__module__ = _kind.__module__.removeprefix("stridescope.engine.")
    write_out(_kind)
for _kind in (Adafactor, Muon):
    _kind.__module__ = "torch.optim"

__all__ = [
    "ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "Muon", "NAdam", "Optimizer",
    "RAdam", "RMSprop", "Rprop", "SGD", "SparseAdam", "lr_scheduler", "swa_utils",
]  # fmt: skip


# swa_utils needs torch.nn, which most users of an optimizer have loaded anyway
__getattr__ = missing_from("torch.optim", __name__)
