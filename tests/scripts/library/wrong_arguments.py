"""What every module, optimizer, schedule and distribution says to wrong arguments, and how it takes right ones."""

import inspect
import warnings

import torch
import torch.nn as nn


warnings.simplefilter("ignore")


def told(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except TypeError as error:
        return str(error)
    except Exception as error:
        return type(error).__name__
    return "ok"


def taken(function):
    kinds = inspect.Parameter
    marks = {kinds.KEYWORD_ONLY: "k:", kinds.VAR_POSITIONAL: "*", kinds.VAR_KEYWORD: "**"}
    found = inspect.signature(function).parameters.values()
    return ", ".join(marks.get(each.kind, "") + each.name for each in found)


# Deprecated ones, whose constructors PyTorch wraps, and one that it does not export.
OTHER = ("Container", "NLLLoss2d", "NonDynamicallyQuantizableLinear")


def classes(room, parent):
    for name in sorted(room.__all__):
        kind = getattr(room, name)
        if isinstance(kind, type) and issubclass(kind, parent) and name not in OTHER:
            yield kind


rooms = [
    (nn.modules, nn.Module), (torch.optim, torch.optim.Optimizer),
    (torch.optim.lr_scheduler, torch.optim.lr_scheduler.LRScheduler),
]
for room, parent in rooms:
    for kind in classes(room, parent):
        print(kind.__name__, "|", taken(kind))
        print("   ", told(kind))
        print("   ", told(kind, unknown=1))
        print("   ", told(kind, *[2] * 25))
        for method in ("forward", "step"):
            if method in dir(kind):
                print("   ", method, "|", taken(getattr(kind, method)))
        if parent is nn.Module:
            print("   ", told(kind.forward))

D = torch.distributions
for kind in (D.Normal, D.Laplace, D.Cauchy, D.HalfNormal, D.HalfCauchy, D.Bernoulli, D.Geometric, D.NegativeBinomial,
             D.Binomial, D.Uniform, D.Categorical):  # fmt: skip
    print(kind.__name__, "|", taken(kind))
    print("   ", told(kind))
    print("   ", told(kind, unknown=1))

layer, x = nn.Linear(2, 2), torch.ones(1, 2)
for call in (
    lambda: layer(x, x), lambda: nn.MSELoss()(x), lambda: nn.ReLU()(x, x), lambda: nn.CrossEntropyLoss()(x, x, x),
    lambda: nn.LSTM(2, 2)(), lambda: nn.BatchNorm1d(2)(), lambda: nn.Sequential(layer)(x, x),
    lambda: layer.register_forward_hook(print, True), lambda: layer.register_forward_hook(print, unknown=1),
    lambda: layer.register_state_dict_post_hook(), lambda: torch.optim.Adam(layer.parameters()).step(1, 2),
):  # fmt: skip
    print(told(call))
