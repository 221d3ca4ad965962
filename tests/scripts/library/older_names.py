"""What older lessons write and PyTorch still takes, with its warnings; and the order of stft's warnings and refusals."""

import warnings

import torch
from torch.autograd import Variable


def said(run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            print(run())
        except (TypeError, ValueError, RuntimeError, AttributeError) as error:
            print(type(error).__name__, error)
    for warning in caught:
        print("  warned:", warning.message)


ones = torch.ones(2)
said(lambda: Variable(ones, volatile=True))
said(lambda: Variable(ones, True, True))
said(lambda: Variable(ones, True, name="x"))
said(lambda: Variable(ones, bad=1))
said(lambda: Variable(3))
said(lambda: Variable())
said(lambda: Variable(ones.long(), requires_grad=True))
said(lambda: Variable(torch.nn.Parameter(ones)))
for name in ("has_cuda", "has_cudnn", "has_mkldnn", "has_mps", "has_nothing"):
    said(lambda: getattr(torch, name))
signal = torch.ones(10)
said(lambda: torch.stft(signal, 4))
said(lambda: torch.stft(signal, 4, return_complex=False).shape)
said(lambda: torch.stft(signal, 40, return_complex=False, center=False))
said(lambda: torch.istft(torch.ones(3, 4), 4))
