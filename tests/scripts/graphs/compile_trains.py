"""A training step, a custom function and a list that keeps tensors, inside of compiled functions."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
x = torch.randn(16, 2)
y = x.sum(1, keepdim=True)


def backend(gm, inputs):
    return gm.forward


@torch.compile(backend=backend)
def step(x, y):
    loss = F.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


print([round(step(x, y).item(), 4) for _ in range(4)], net[2].bias.grad)


class Seven(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return grad * 7


z = torch.ones(2, requires_grad=True)
torch.compile(lambda z: Seven.apply(z * 1) + 1, backend=backend)(z).sum().backward()
print(z.grad)
kept = []


def keeps(x):
    h = x * 2
    kept.append(h)
    return h + 1


print(torch.compile(keeps, backend=backend)(torch.ones(2)), kept)
a = torch.randn(2, 3, 4)
for module in (nn.LSTM(4, 4), nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()):
    outputs = [call(a) for call in (torch.compile(module, backend=backend), module)]
    first, second = (o[0] if isinstance(o, tuple) else o for o in outputs)
    print(torch.allclose(first, second))
