"""Corners of Module: hooks on all modules, paths, repeated Sequentials, merged dicts, fused norms, skipped starts."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.modules import module as every
from torch.nn.utils import fuse_conv_bn_eval, fuse_linear_bn_eval, skip_init


def attempt(action):
    try:
        print("fine:", action())
    except Exception as error:
        print(type(error).__name__, str(error))


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 2)))
seen = []
handles = [
    every.register_module_forward_pre_hook(lambda m, args: seen.append("before " + type(m).__name__)),
    every.register_module_forward_hook(lambda m, args, kwargs, out: seen.append(len(kwargs)), with_kwargs=True),
    every.register_module_full_backward_hook(lambda m, gi, go: seen.append("backward " + type(m).__name__)),
    every.register_module_parameter_registration_hook(lambda m, name, p: seen.append("got " + name)),
    every.register_module_module_registration_hook(lambda m, name, child: seen.append("child " + name)),
]
net(torch.ones(1, 3)).sum().backward()
other = nn.Sequential()
other.extra = nn.Linear(1, 1)
for handle in handles:
    handle.remove()
net(torch.ones(1, 3))
print(seen)
net.set_submodule("2.0", nn.Linear(4, 5))
print(net.get_submodule("2.0"), net.get_parameter("2.0.bias").shape)
attempt(lambda: net.set_submodule("2.1", nn.ReLU(), strict=True))
attempt(lambda: net.set_submodule("", nn.ReLU()))
attempt(lambda: net.get_submodule("2.5"))
attempt(lambda: net.get_buffer("0.weight"))
twice = nn.Sequential(nn.Linear(2, 2), nn.Tanh()) * 2
print(twice, twice[0] is twice[2])
twice *= 2
print(len(twice))
attempt(lambda: twice * 0)
first, second = nn.ParameterDict({"a": torch.ones(2), "b": torch.ones(1)}), nn.ParameterDict({"b": torch.zeros(3)})
print(first | second, list(reversed(first)))
first |= second
print(list(first.items())[1])
conv, norm = nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)
norm(torch.randn(4, 3, 2, 2))
x = torch.randn(1, 2, 5, 5)
fused = fuse_conv_bn_eval(conv.eval(), norm.eval())
print(torch.allclose(fused(x), norm(conv(x)), atol=1e-6), fused)
linear, norm1 = nn.Linear(4, 3).eval(), nn.BatchNorm1d(3).eval()
print(torch.allclose(fuse_linear_bn_eval(linear, norm1)(x[0, 0, :1, :4]), norm1(linear(x[0, 0, :1, :4]))))
attempt(lambda: fuse_conv_bn_eval(conv.train(), norm))
print(skip_init(nn.Linear, 3, 2, dtype=torch.float64).weight.shape)
attempt(lambda: skip_init(nn.ReLU))
q = torch.randn(1, 2, 4, 8)
with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
    print(F.scaled_dot_product_attention(q, q, q).shape)
attempt(lambda: sdpa_kernel(3).__enter__())
wrapped = nn.DataParallel(nn.Linear(2, 2))
print(list(wrapped.state_dict()), wrapped(torch.ones(1, 2)).shape, wrapped.module)
weight = torch.randn(3, 2, 3, 3, requires_grad=True)
x = torch.randn(1, 2, 6, 6, requires_grad=True)
out = F.conv2d(x, weight, stride=2, padding=1)
grad = torch.randn_like(out)
gx, gw = torch.autograd.grad(out, (x, weight), grad)
print(torch.allclose(gx, nn.grad.conv2d_input(x.shape, weight, grad, stride=2, padding=1), atol=1e-6))
print(torch.allclose(gw, nn.grad.conv2d_weight(x, weight.shape, grad, stride=2, padding=1), atol=1e-5))
twin = copy.deepcopy(net).requires_grad_(False)
print(sum(p.requires_grad for p in twin.parameters()), hasattr(nn, "NoSuchLayer"), hasattr(torch.optim, "NoSuch"))
print(nn.NLLLoss2d()(torch.zeros(1, 2, 2, 2).log_softmax(1), torch.zeros(1, 2, 2, dtype=torch.long)))
print(torch.eye(3).fill_diagonal_(5), torch.zeros(7, 2).fill_diagonal_(1, wrap=True).sum())
