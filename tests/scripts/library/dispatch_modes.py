"""Below autograd: a mode that logs ops, one that counts what a training step computes, and a tensor that wraps one."""

from collections import Counter

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map
from torch.utils.flop_counter import FlopCounterMode

torch.manual_seed(3)


class Logger(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.depth = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        shapes = [tuple(a.shape) for a in args if isinstance(a, torch.Tensor)]
        print(func, *shapes)
        return func(*args, **(kwargs or {}))


class OpCounter(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.counts[func.overloadpacket] += 1
        return func(*args, **(kwargs or {}))


class Traced(torch.Tensor):
    elem: torch.Tensor
    __slots__ = ["elem"]

    @staticmethod
    def __new__(cls, elem, *args, **kwargs):
        made = torch.Tensor._make_wrapper_subclass(
            cls, elem.size(), strides=elem.stride(), storage_offset=elem.storage_offset(), dtype=elem.dtype,
            layout=elem.layout, device=elem.device, requires_grad=kwargs.get("requires_grad", elem.requires_grad),
        )
        made.elem = elem.detach() if made.requires_grad else elem
        return made

    def __repr__(self):
        return f"Traced({self.elem})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def unwrap(value):
            return value.elem if isinstance(value, cls) else value

        def wrap(value):
            return cls(value) if isinstance(value, torch.Tensor) else value

        print("  traced", func, [kind.__name__ for kind in types])
        return tree_map(wrap, func(*tree_map(unwrap, args), **tree_map(unwrap, kwargs or {})))


model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3))
data, target = torch.randn(5, 4), torch.tensor([0, 1, 2, 0, 1])

with Logger():
    loss = F.cross_entropy(model(data), target)
    loss.backward()

image = torch.randn(2, 3, 8, 8)
net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(36, 2))
with OpCounter() as counter:
    net(image).sum()
for op, count in sorted(counter.counts.items(), key=lambda item: str(item[0])):
    print(op, count)

with FlopCounterMode(display=False) as flops:
    net(image).sum().backward()
print(flops.get_total_flops())

x = Traced(torch.arange(6.0).reshape(2, 3), requires_grad=True)
y = (torch.tanh(x) * 2 + x.t().reshape(2, 3)).sum()
print(y, y.grad_fn.name())
y.backward()
print(x.grad)
z = Traced(torch.ones(2))
z.mul_(3)
print(z, bool((z > 2).all()), torch.cat([z, torch.zeros(1)]))
with Logger():
    print(z + 1)
