"""Write pytorch.safetensors; run once with real PyTorch and safetensors, never by the tests."""

import pathlib

import torch
from safetensors.torch import save_file

save_file(
    {
        "weight": torch.arange(6.0).reshape(2, 3),
        "half": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
        "mask": torch.tensor([True, False]),
        "none": torch.zeros(0, 3, dtype=torch.int64),
    },
    pathlib.Path(__file__).with_name("pytorch.safetensors"),
)
