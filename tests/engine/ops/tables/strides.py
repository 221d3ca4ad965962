"""The strides of elementwise results whose operands have dims of size 1, for any module that looks like torch.

``python strides.py torch > strides.json`` records real PyTorch's; the test beside asks our engine the same.
"""

from __future__ import annotations

import importlib
import itertools
import json
import sys
from typing import Any

SHAPES = [(1, 3), (3, 1), (1, 1), (2, 1, 3), (1, 2, 1), (2, 1, 1, 3)]
EXPRESSIONS = [
    # numbers are operands
    "t + 1", "t * 2.0", "1 - t", "t / 2", "2 / t", "t // 0.3", "t % 0.3", "torch.fmod(t, 0.3)", "torch.xlogy(t, 2.0)",
    "torch.copysign(t, -1.0)", "(t * 10).int() & 3", "(t * 10).int() << 1", "torch.add(t, 1, alpha=2)", "t < 0.5",
    "t == 1", "torch.where(t > 0.5, t, 0.0)", "torch.where(t > 0.5, 1.0, 0.0)", "t.expand(2, *t.shape) + 1",
    "t + torch.tensor(2.0)", "t > torch.tensor(0.5)",
    # numbers are settings
    "t ** 2", "t ** 0.3", "2 ** t", "torch.float_power(t, 2)", "t.clamp(0.2, 0.6)", "t.clamp(min=0.2)",
    "torch.lerp(t, t, 0.5)", "F.leaky_relu(t, 0.1)", "F.elu(t)", "F.softplus(t)", "F.threshold(t, 0.1, 1.0)",
    "t.round(decimals=2)", "F.hardshrink(t)",
    # the result is made like the first operand, or always row by row
    "F.hardtanh(t)", "t.nan_to_num(0.0)", "t.masked_fill(t > 0.5, 0.0)",
    # no numbers
    "t * t", "t.exp()", "-t", "t + torch.ones(t.shape)", "t.relu()", "torch.addcmul(t, t, t)", "torch.maximum(t, t)",
    "torch.where(t > 0.5, t, t)", "torch.logical_not(t)", "torch.isclose(t, t)",
]  # fmt: skip


def observe(torch: Any) -> dict[str, list[list[int]]]:
    """For each expression its strides, over every permutation of every shape."""
    names = {"torch": torch, "F": torch.nn.functional}
    inputs = [torch.rand(s).permute(p) for s in SHAPES for p in itertools.permutations(range(len(s)))]
    return {e: [list(eval(e, {**names, "t": t}).stride()) for t in inputs] for e in EXPRESSIONS}


if __name__ == "__main__":
    json.dump(observe(importlib.import_module(sys.argv[1])), sys.stdout)
