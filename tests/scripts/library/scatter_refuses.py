"""scatter_reduce: which refusal comes first when several things are wrong."""

import torch


def told(call):
    try:
        print(call())
    except Exception as error:
        print(type(error).__name__, error)


index = torch.tensor([[0, 1]])
spectrum, flags = torch.ones(2, 3, dtype=torch.complex64), torch.ones(2, 3, dtype=torch.bool)
for target, other, reduce in ((spectrum, spectrum.real, "amax"), (flags, flags.float(), "mean")):
    for dim, where, source in (
        (4, index, target), (0, index[0], target), (0, index, other), (0, index.float(), target),
        (0, index.expand(5, 2), target), (0, index, target), (0, index[:, :0], target),
    ):
        told(lambda: target.scatter_reduce(dim, where, source, reduce))
    told(lambda: target.scatter_reduce(0, index, target, "unknown"))
