"""Tensors on the meta device: shapes without values, and what cannot be asked of them."""
import copy

import torch
import torch.nn as nn


def attempt(name, function):
    try:
        print(name, function())
    except Exception as error:
        print(name, type(error).__name__, error)


m = nn.Linear(2, 2, device="meta")
x = torch.ones(2, device="meta")
s = x.sum()
print(x, repr(s), f"{s}", m.weight, sep="\n")
for name, function in {
    "to": lambda: m.to("cpu"), "cpu": lambda: x.cpu(), "item": lambda: s.item(), "bool": lambda: bool(s),
    "float": lambda: float(s), "int": lambda: int(s), "index": lambda: [1, 2][torch.tensor(1, device="meta")],
    "tolist": lambda: x.tolist(), "numpy": lambda: x.numpy(), "copy_": lambda: torch.zeros(2).copy_(x),
    "copy_ into": lambda: x.copy_(torch.zeros(2)), "clone": lambda: x.clone(), "double": lambda: x.double(),
    "to meta": lambda: torch.ones(2).to("meta"), "with a number": lambda: x + 1, "relu": lambda: x.relu().shape,
    "load": lambda: m.load_state_dict(nn.Linear(2, 2).state_dict()),
    "assign": lambda: m.load_state_dict(nn.Linear(2, 2).state_dict(), assign=True),
    "assigned": lambda: m.weight.device,
    "to_empty": lambda: nn.Linear(2, 2, device="meta").to_empty(device="cpu").weight.shape,
    "copied": lambda: copy.deepcopy(nn.Linear(2, 2, device="meta")).weight.device,
    "large": lambda: nn.Linear(10000, 10000, device="meta")(torch.empty(3, 10000, device="meta")).shape,
}.items():
    attempt(name, function)
torch.manual_seed(0)
nn.Linear(100, 100, device="meta")
print(torch.rand(2))  # what has no values has drawn nothing


class Named(torch.Tensor):
    """A subclass that prints in its own way."""

    def __repr__(self, *, tensor_contents=None):
        return "mine"


n = torch.ones(2).as_subclass(Named)
print(n, str(n), f"{n}", [n])
