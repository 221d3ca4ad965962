"""Programs whose ops, as a TorchDispatchMode sees them, PyTorch's answers fix, for any module that looks like torch.

``python -W ignore dispatched.py torch > dispatched.json`` answers every line of ``dispatched.txt`` with real PyTorch;
the test beside asks our engine the same. What stands before ``||`` is done first, without the mode.
"""

from __future__ import annotations

import importlib
import json
import pathlib
import sys
from typing import Any

LINES = pathlib.Path(__file__).with_name("dispatched.txt")


def shown(torch: Any, value: Any) -> str:
    """An argument or result: shapes of tensors, the rest as it is written."""
    if isinstance(value, torch.Tensor):
        return f"T{list(value.shape)}"
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(shown(torch, item) for item in value)}]"
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def given(torch: Any) -> dict[str, Any]:
    """The names that a program has."""
    torch.manual_seed(0)
    names = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}
    shapes = {"x": (3, 4), "y": (3, 4), "w": (4, 5), "v": (4,), "b": (5,), "B": (2, 3, 4), "img": (2, 3, 8, 8),
              "sq": (4, 4)}  # fmt: skip
    names |= {name: torch.randn(*shape, requires_grad=True) for name, shape in shapes.items()}
    mask = torch.tensor([True, False, True])
    return names | {"d": torch.randn(3, 4), "i": torch.tensor([0, 2, 1]), "m": mask}


def answer(torch: Any, line: str) -> list[str]:
    """Every op of a program, with its arguments and result."""
    dispatch = importlib.import_module(f"{torch.__name__}.utils._python_dispatch")
    seen: list[str] = []

    class Log(dispatch.TorchDispatchMode):  # type: ignore[misc, name-defined]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            named = [f"{name}={shown(torch, value)}" for name, value in (kwargs or {}).items()]
            seen.append(f"{func}({', '.join([*(shown(torch, a) for a in args), *named])}) -> {shown(torch, result)}")
            return result

    before, _, program = line.rpartition("||")
    names = given(torch)
    exec(before, names)
    with Log():
        exec(program, names)
    return seen


if __name__ == "__main__":
    module = importlib.import_module(sys.argv[1])
    lines = LINES.read_text(encoding="utf-8").splitlines()
    json.dump({line: answer(module, line) for line in lines}, sys.stdout, indent=0)
