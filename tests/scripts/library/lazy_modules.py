"""Lazy modules: shapes from the first batch, loading into them, copying and casting them before it."""

import copy

import torch
import torch.nn as nn
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy


def attempt(action):
    try:
        print("fine:", action())
    except Exception as error:
        print(type(error).__name__, str(error)[:43])


torch.manual_seed(0)
net = nn.Sequential(
    nn.LazyConv2d(4, 3, padding=1), nn.LazyBatchNorm2d(), nn.ReLU(), nn.LazyConvTranspose2d(2, 2, bias=False),
    nn.LazyInstanceNorm2d(affine=True), nn.Flatten(), nn.LazyLinear(3),
)  # fmt: skip
print(net)
print([name for name, p in net.named_parameters() if is_lazy(p)], net[0].weight, net[1].running_mean)
attempt(lambda: net[0].weight.shape)
attempt(lambda: net[0].weight + 1)
attempt(lambda: sum(p.numel() for p in net.parameters()))
attempt(lambda: copy.deepcopy(net))
attempt(lambda: net.share_memory())
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net = net.double().float()
print(net(torch.randn(2, 3, 6, 6)).shape)
print(net)
print(type(net[0]).__name__, net[0].weight.shape, type(net[0].weight).__name__, net[0].in_channels)
loss = net(torch.randn(2, 3, 6, 6)).square().mean()
loss.backward()
before = net[6].weight[0, :3].clone()
optimizer.step()
print(f"{loss.item():.5f}", torch.equal(before, net[6].weight[0, :3]))
print(net[6].bias)

layer = nn.LazyLinear(2)
layer.load_state_dict(nn.Linear(5, 2).state_dict())
print(layer, layer.weight.shape, type(layer.weight).__name__)
print(layer(torch.ones(1, 5)).shape, layer)
lazy = nn.LazyLinear(2)
print(nn.LazyLinear(2).load_state_dict(lazy.state_dict()), list(lazy.state_dict()))
attempt(lambda: nn.Linear(5, 2).load_state_dict(lazy.state_dict()))
attempt(lambda: nn.LazyConv1d(2, 3)(torch.zeros(4)))
attempt(lambda: nn.LazyConv3d(2, 3, groups=2)(torch.zeros(3, 4, 4, 4)))
parameter = UninitializedParameter(dtype=torch.float64)
parameter.materialize((2, 3))
print(type(parameter).__name__, parameter.shape, parameter.dtype, parameter.requires_grad)
buffer = UninitializedBuffer()
buffer.materialize((4,))
print(type(buffer).__name__, buffer.shape)


class Scale(nn.modules.lazy.LazyModuleMixin, nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = UninitializedParameter()

    def initialize_parameters(self, x):
        if self.has_uninitialized_params():
            self.scale.materialize(x.shape[1:])
            nn.init.ones_(self.scale)

    def forward(self, x):
        return x * self.scale


print(Scale()(torch.ones(2, 3)))
