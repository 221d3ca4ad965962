"""Looking inside: forward hooks that gather features, hooks on gradients, Grad-CAM, removable handles."""

from collections import OrderedDict

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)
model = nn.Sequential(
    OrderedDict(
        conv1=nn.Conv2d(1, 4, 3, padding=1),
        act1=nn.Hardswish(),
        conv2=nn.Conv2d(4, 6, 3, stride=2),
        act2=nn.Mish(),
        pool=nn.AdaptiveAvgPool2d(2),
        flat=nn.Flatten(),
        fc=nn.Linear(24, 3),
    )
)
features, gradients, order = {}, {}, []


def keep(name):
    def hook(module, inputs, output):
        features[name] = output
        order.append(name)

    return hook


def keep_gradient(module, grad_input, grad_output):
    gradients[type(module).__name__] = grad_output[0]


handles = [module.register_forward_hook(keep(name)) for name, module in model.named_children()]
handles.append(model.conv2.register_full_backward_hook(keep_gradient))
model.fc.register_forward_pre_hook(lambda module, args: (args[0] * 0.5,))
model.act1.register_forward_hook(lambda module, args, kwargs, output: output + 0.01, with_kwargs=True)
x = torch.randn(2, 1, 9, 9, requires_grad=True)
x.register_hook(lambda grad: order.append("input's gradient"))
scores = model(x)
scores[:, 1].sum().backward()
print(order)
for name, value in features.items():
    print(f"{name:6s} {tuple(value.shape)} mean {value.mean().item():.4f}")
weights = gradients["Conv2d"].mean(dim=(2, 3), keepdim=True)
cam = F.relu((weights * features["conv2"].detach()).sum(1))
print(cam[0])
for handle in handles:
    handle.remove()
order.clear()
model(x)
print(order)
parameter = model.fc.weight
handle = parameter.register_hook(lambda grad: grad.clamp(-0.01, 0.01))
model.zero_grad()
model(x).square().sum().backward()
print(parameter.grad.abs().max())
handle.remove()
steps = []
for p in model.parameters():
    p.register_post_accumulate_grad_hook(lambda p: steps.append(tuple(p.shape)))
model(x).sum().backward()
print(steps)
activations = []
with torch.no_grad():
    for module in model.children():
        x = module(x)
        activations.append(round(x.std().item(), 4))
print(activations)
seen = []
handle = torch.nn.modules.module.register_module_forward_hook(lambda m, i, o: seen.append(type(m).__name__))
model(torch.zeros(1, 1, 9, 9))
handle.remove()
print(seen)
