"""Expressions whose results, layouts and errors PyTorch's answers fix, for any module that looks like torch.

``python probes.py torch > probes.json`` answers every line of ``probes.txt`` with real PyTorch; the test beside asks
our engine the same. A line holds statements, divided by ``;;``, and last an expression.
"""

from __future__ import annotations

import importlib
import json
import pathlib
import sys
import warnings
from typing import Any

LINES = pathlib.Path(__file__).with_name("probes.txt")


def shown(torch: Any, value: Any) -> str:
    """What can be seen of a value: dtype, layout, version, elements and node of each tensor in it."""
    if isinstance(value, torch.Tensor):
        node = "" if value.grad_fn is None else value.grad_fn.name()
        layout = f"{tuple(value.shape)} {value.stride()} {value.storage_offset()} v{value._version}"
        return f"{value.dtype} {layout} {value.tolist()} {node}"
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__}{[shown(torch, item) for item in value]}"
    return repr(value)


def answer(torch: Any, line: str) -> str:
    """The value of a line, or the error that it raises."""
    *statements, expression = line.split(";;")
    names = {"torch": torch, "F": torch.nn.functional}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec("\n".join(statements), names)
            return shown(torch, eval(expression, names))
        except Exception as error:
            return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    module = importlib.import_module(sys.argv[1])
    lines = LINES.read_text(encoding="utf-8").splitlines()
    json.dump({line: answer(module, line) for line in lines}, sys.stdout, indent=0)
