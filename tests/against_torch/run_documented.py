"""Runs the examples that stand in PyTorch's own docstrings: ``run_documented.py extract OUT`` (with real PyTorch) finds
them, ``run_documented.py run EXAMPLES OUT`` runs them on whatever ``torch`` is and keeps what each statement printed.

Nothing of the docstrings is kept in this repository; whoever has PyTorch has them.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import json
import math
import pathlib
import random
import signal
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Any

SECONDS = 3  # for one statement: some examples are made for GPUs
ROOMS = [
    "", "nn", "nn.functional", "linalg", "fft", "special", "optim", "optim.lr_scheduler", "optim.swa_utils",
    "distributions", "autograd", "func", "utils.data", "nn.utils", "nn.init", "autograd.functional",
    "autograd.forward_ad", "autograd.graph", "nn.utils.rnn", "nn.utils.parametrize", "nn.utils.parametrizations",
    "nn.utils.prune", "utils.checkpoint", "amp", "random", "signal.windows", "testing",
]  # fmt: skip
CLASSES = [("Tensor", ""), ("Module", "nn"), ("Function", "autograd"), ("Sequential", "nn"), ("ModuleList", "nn")]


class OutOfTimeError(BaseException):
    """A statement took too long; no example can catch it."""


def documented(torch: Any) -> Iterator[tuple[str, str]]:
    """Every public name with its docstring, each docstring once."""
    places = [(f"torch.{room}".rstrip("."), importlib.import_module(f"torch.{room}".rstrip("."))) for room in ROOMS]
    for name, room in CLASSES:
        owner = importlib.import_module(f"torch.{room}".rstrip("."))
        places.append((f"{owner.__name__}.{name}", getattr(owner, name)))
    seen = set()
    for place, owner in places:
        for name in sorted(n for n in dir(owner) if not n.startswith("_")):
            member = getattr(owner, name, None)
            text = getattr(member, "__doc__", None)
            foreign = isinstance(member, types.ModuleType) or getattr(member, "__module__", None) == "numpy"
            if isinstance(text, str) and ">>>" in text and not foreign and text not in seen:
                seen.add(text)
                yield f"{place}.{name}", text


def statements(text: str) -> list[str]:
    """The statements of a docstring's examples, also where their indentation is not what doctest wants."""
    try:
        return [example.source for example in doctest.DocTestParser().get_examples(text)]
    except ValueError:
        found: list[str] = []
        for line in map(str.strip, text.splitlines()):
            if line.startswith(">>> "):
                found.append(line[4:] + "\n")
            elif line.startswith("... ") and found:
                found[-1] += line[4:] + "\n"
        return found


def printed(source: str, names: dict[str, Any]) -> str:
    """What a statement prints, or its exception after a ``!``; ``?`` when it takes too long."""
    out = io.StringIO()
    signal.alarm(SECONDS)
    try:
        with contextlib.redirect_stdout(out):
            try:
                code = compile(source, "<example>", "single")
            except SyntaxError:
                code = compile(source, "<example>", "exec")
            exec(code, names)
    except OutOfTimeError:
        return "?"
    except BaseException as error:
        return f"{out.getvalue()}!{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    return out.getvalue()


def reset(torch: Any) -> dict[str, Any]:
    """Put every switch back that an example may have set, and give the names that all examples take for granted."""
    torch.manual_seed(0)
    random.seed(0)
    torch.set_default_device(None)
    torch.set_default_dtype(torch.float32)
    torch.set_printoptions(profile="default")
    torch.set_grad_enabled(True)
    torch.use_deterministic_algorithms(False)
    numpy = importlib.import_module("numpy")
    functional, optim = importlib.import_module("torch.nn.functional"), importlib.import_module("torch.optim")
    known = {"torch": torch, "nn": torch.nn, "F": functional, "optim": optim, "math": math, "np": numpy}
    return {**known, "Tensor": torch.Tensor, "__name__": "example"}


def run(torch: Any, examples: dict[str, list[str]]) -> dict[str, list[str]]:
    """Run each docstring's examples from the start until one takes too long."""

    def stop(*_signal: object) -> None:
        raise OutOfTimeError

    signal.signal(signal.SIGALRM, stop)
    found: dict[str, list[str]] = {}
    for name, sources in examples.items():
        names, seen = reset(torch), found.setdefault(name, [])
        for source in sources:
            seen.append(printed(source, names))
            if seen[-1] == "?":
                break
    return found


def main(what: str, *paths: str) -> None:
    """Do what the command line says."""
    warnings.simplefilter("ignore")
    if what == "extract":
        torch = importlib.import_module("torch")
        result: Any = {name: statements(text) for name, text in documented(torch)}
    else:
        examples = json.loads(pathlib.Path(paths[0]).read_text(encoding="utf-8"))
        result = run(importlib.import_module("torch"), examples)
    pathlib.Path(paths[-1]).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
