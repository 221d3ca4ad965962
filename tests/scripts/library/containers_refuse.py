"""What the containers of modules and parameters refuse, and how they say it."""

import torch
import torch.nn as nn


def told(call):
    try:
        print(call())
    except Exception as error:
        print(type(error).__name__, error)


pairs = [
    [1], [(1,)], [("a", nn.ReLU()), 3], 5, [("a", 1)], {"a": 1}, {"a.b": nn.ReLU()}, [["x", nn.ReLU(), 2]], "ab",
    {1: nn.ReLU()},
]
for given in pairs:
    for kind in (nn.ModuleDict, nn.ParameterDict):
        told(lambda: kind(given))
for given in (5, [1], nn.ReLU(), [nn.ReLU(), 3], "a"):
    for kind in (nn.ModuleList, nn.ParameterList, nn.Sequential):
        told(lambda: kind(given))

modules = nn.ModuleList([nn.ReLU()])
told(lambda: modules.extend(3))
told(lambda: modules.append(3))
told(lambda: modules[5])
told(lambda: modules["a"])
told(lambda: modules + [1])
told(lambda: modules.insert(9, nn.ReLU()))
told(lambda: modules.pop(4))
told(lambda: modules.forward(1))
told(lambda: nn.ModuleDict()["q"])

stack = nn.Sequential(nn.ReLU())
for call in (
    lambda: stack[3], lambda: stack.append(3), lambda: stack + 3, lambda: stack * 0, lambda: stack * "a",
    lambda: stack.extend(3), lambda: stack.insert(7, nn.ReLU()), lambda: stack.insert(0, 3), lambda: stack.pop(2),
):
    told(call)

named = nn.ParameterDict({"a": torch.ones(1)})
for call in (
    lambda: named[1], lambda: named["z"], lambda: named.pop("z"), lambda: named.pop(1), lambda: 1 in named,
    lambda: named.get("q"), lambda: named.get(1), lambda: named | {"b": torch.ones(1)}, lambda: named | 3,
    lambda: named.__setitem__(1, torch.ones(1)), lambda: named.setdefault(1), lambda: 1 in named,
    lambda: named.__delitem__(1), lambda: 1 in named, lambda: named.get(1), lambda: named.update({1: 2}),
    lambda: named.__delitem__("q"), lambda: named.fromkeys([1]),
):
    told(call)
