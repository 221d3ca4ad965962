"""Run with real PyTorch, it makes what the tests load: ``pytorch.pt``, and ``legacy.pt`` as before PyTorch 1.6."""

from __future__ import annotations

import collections
import pathlib
from typing import Any

FILE = pathlib.Path(__file__).with_name("pytorch.pt")
LEGACY = FILE.with_name("legacy.pt")


def contents(torch: Any) -> dict[str, Any]:
    """A bit of everything that checkpoints hold."""
    base = torch.arange(12.0).reshape(3, 4)
    model = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False))
    model[0].weight.data.copy_(torch.tensor([[1.0, -2.0], [0.5, 4.0]]))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model[0].weight.grad = torch.ones(2, 2)
    optimizer.step()
    return {
        "view": base[1:, ::2],
        "base": base,
        "kinds": [torch.ones(2).to(kind) for kind in (torch.float16, torch.bfloat16, torch.int32, torch.bool)],
        "complex": torch.tensor([1 + 2j]).conj(),
        "young": torch.tensor([1, 2], dtype=torch.uint16),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "empty": torch.empty(2, 0, 3),
        "plain": (1, 2.5, None, True, "text", b"bytes", [1 << 40, -5], torch.float64, torch.Size([2, 3])),
        "order": collections.OrderedDict(a=1),
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
    }


if __name__ == "__main__":
    import torch

    torch.save(contents(torch), FILE)
    torch.save(contents(torch), LEGACY, _use_new_zipfile_serialization=False)
