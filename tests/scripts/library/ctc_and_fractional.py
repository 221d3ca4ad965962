"""Connectionist temporal classification, fractional pooling, and a linear layer with its cross entropy."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def attempt(action):
    try:
        print("fine:", action())
    except Exception as error:
        print(type(error).__name__, str(error))


torch.manual_seed(0)
logits = torch.randn(6, 3, 5, requires_grad=True)
logs = logits.log_softmax(2)
targets = torch.tensor([[1, 2, 0], [1, 3, 3], [2, 2, 4]])
inputs, lengths = torch.tensor([5, 6, 6]), torch.tensor([2, 3, 3])
for reduction in ("none", "mean", "sum"):
    loss = nn.CTCLoss(reduction=reduction)(logs, targets, inputs, lengths)
    print(loss, loss.grad_fn.name())
(gradient,) = torch.autograd.grad(F.ctc_loss(logs, targets, inputs, lengths), logits)
print(gradient[:2])
joined = torch.tensor([1, 2, 1, 3, 3, 2, 2, 4])
print(F.ctc_loss(logs, joined, (5, 6, 6), (2, 3, 3), blank=0))
print(F.ctc_loss(logs[:, 0], targets[0, :2], torch.tensor(5), torch.tensor(2), reduction="none"))
short = F.ctc_loss(logs, targets, (1, 6, 6), (2, 3, 3), reduction="none")
print(short, F.ctc_loss(logs, targets, (1, 6, 6), (2, 3, 3), reduction="none", zero_infinity=True))
print(F.ctc_loss(logs.double(), targets, (5, 6, 6), (0, 1, 2), blank=4, reduction="none"))
attempt(lambda: F.ctc_loss(logs, targets, (5, 6), (2, 3, 3)))
attempt(lambda: F.ctc_loss(logs, targets, (5, 6, 7), (2, 3, 3)))
attempt(lambda: F.ctc_loss(logs, targets, (5, 6, 6), (2, 3, 4)))
attempt(lambda: F.ctc_loss(logs, joined, (5, 6, 6), (2, 3, 2)))
attempt(lambda: F.ctc_loss(logs, targets, (5, 6, 6), (2, 3, 3), blank=5))
attempt(lambda: F.ctc_loss(logs, targets, inputs.float(), lengths))
attempt(lambda: F.ctc_loss(logs.long(), targets, inputs, lengths))

images = torch.randn(2, 3, 8, 9, requires_grad=True)
pooled, places = nn.FractionalMaxPool2d(3, output_size=(4, 5), return_indices=True)(images)
print(pooled[0, 0], places[0, 0])
pooled.sum().backward()
print(images.grad[0, 0].sum(1), pooled.grad_fn.name())
samples = torch.tensor([[[0.1, 0.7], [0.5, 0.5], [0.9, 0.2]]])
print(F.fractional_max_pool2d(images[:1], 2, output_ratio=(0.5, 0.5), _random_samples=samples)[0, 1])
volumes = torch.randn(1, 2, 5, 6, 7)
print(F.fractional_max_pool3d(volumes, (2, 2, 3), output_ratio=(0.5, 0.6, 0.4))[0, 0])
attempt(lambda: nn.FractionalMaxPool2d(3))
attempt(lambda: nn.FractionalMaxPool2d(3, output_size=2, output_ratio=0.5))
attempt(lambda: nn.FractionalMaxPool3d(3, output_ratio=1.5))
attempt(lambda: F.fractional_max_pool2d(images, 3, output_size=9))
attempt(lambda: F.fractional_max_pool2d(images, 3, output_size=2, _random_samples=torch.rand(2, 3, 3)))

torch.manual_seed(283)
loss = nn.LinearCrossEntropyLoss(5, 7, bias=True)
print(loss)
x, y = torch.randn(4, 5), torch.randint(0, 7, (4,))
print(loss(x, y), F.linear_cross_entropy(x, loss.linear.weight, y, linear_bias=loss.linear.bias, reduction="sum"))
pieces = nn.LinearCrossEntropyLoss(5, 7, options=nn.LinearCrossEntropyOptions(batch_chunk_size=2))
pieces.load_state_dict({"linear.weight": loss.linear.weight})
print(f"{pieces(x, y).item():.5f}", f"{F.cross_entropy(x @ loss.linear.weight.T, y).item():.5f}")
several = nn.LinearCrossEntropyLoss(5, 7, out_features=(2, 3))
print(several(x, torch.randint(0, 7, (4, 2, 3))))
attempt(lambda: loss(torch.randn(4, 6), y))
attempt(lambda: nn.LinearCrossEntropyOptions(acc_policy="none"))
