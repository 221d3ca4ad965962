"""Modules converted and parametrizations moved; triangles as vectors."""

import torch
import torch.nn as nn
from torch.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix
from torch.nn.utils import parametrize
from torch.random import thread_safe_generator

torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2), nn.Sequential(nn.BatchNorm1d(3, affine=False), nn.ReLU()))
net[1].running_mean += 0.5
made = nn.SyncBatchNorm.convert_sync_batchnorm(net.eval())
print(made, made is net, made[1].training)
print(made[1].weight is net[1].weight, made[1].running_mean, made[2][0].weight, list(made.state_dict()))
bare = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm2d(2, momentum=None, track_running_stats=False))
print(bare, bare.training, bare.running_mean)


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)


source, target = nn.Linear(3, 3), nn.Linear(3, 3)
parametrize.register_parametrization(source, "weight", Symmetric())
print(parametrize.type_before_parametrizations(source), parametrize.type_before_parametrizations(target))
moved = parametrize.transfer_parametrizations_and_params(source, target)
print(moved is target, parametrize.is_parametrized(target, "weight"), torch.equal(source.weight, target.weight))
print([name for name, _ in target.named_parameters()])
print(thread_safe_generator(), torch.rand(1, generator=thread_safe_generator()))

for diagonal in (-1, 0, 1):
    try:
        print(vec_to_tril_matrix(torch.arange(6.0), diagonal))
    except ValueError as error:
        print(error)
print(vec_to_tril_matrix(torch.arange(12.0).view(2, 6)))
for diagonal in (-3, -1, 0, 1, 2, 3):
    try:
        print(tril_matrix_to_vec(torch.arange(18.0).view(2, 3, 3), diagonal))
    except ValueError as error:
        print(error)
