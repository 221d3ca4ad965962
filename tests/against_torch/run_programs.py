"""Run random programs, and compare what they observed.

    python run_programs.py MODULE FIRST COUNT [--family autograd|ops|calls] [--steps N] [--kinds a,b,…] [--show]

runs the programs with seeds FIRST, FIRST + 1, … and prints one JSON list of observations a line; ``--show`` prints the
steps for people. ``compare(ours, theirs)`` finds the first difference of two such lists. The autograd family holds
views, writes and backward passes over float64, the ops family ops of every dtype; calls adds whole families by name.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import pathlib
import sys
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import op_steps  # noqa: E402, F401  # importing them registers the steps
import op_steps_calls  # noqa: E402, F401
import op_steps_forms  # noqa: E402, F401
import op_steps_memory  # noqa: E402, F401
import op_steps_random  # noqa: E402, F401
import op_steps_reduce  # noqa: E402, F401
import op_steps_shapes  # noqa: E402, F401
import op_steps_tracked  # noqa: E402, F401
from op_programs import OpProgram  # noqa: E402
from programs import STEPS, Program  # noqa: E402

OWN_FAULT = "PyTorch failed an assertion of its own"
# The second is what new_tensor of a tensor with a negative bit says, where it does not end the process.
OWN_WORDS = ("INTERNAL ASSERT FAILED", "doesn't correspond to a device")


# Two right kernels may round a half-precision number to neighbours.
# What is near zero: of single precision gelu is there a difference of numbers close to 1; of numbers in shares of the
# largest one (Single and Half, in op_steps_calls.py) it is the rounding of that one.
NEAR = {"float32": 2e-7, "complex64": 2e-7, "Single": 3e-6, "Half": 2e-2}
TOLERANCES = {"float16": 1e-3, "bfloat16": 8e-3}


def observe(torch: Any, seed: int, steps: int, kinds: list[str], family: str = "autograd") -> list[Any]:
    """Run one program and give everything it observed."""
    program = Program(torch, seed, kinds) if family == "autograd" else OpProgram(torch, seed, family)
    program.run(steps)
    return program.seen


def compare(ours: Any, theirs: Any, path: str = "", rel: float = 1e-6, near: float = 1e-7) -> str | None:
    """The first difference of two observations, in words; None when they agree.

    Where PyTorch found itself in a state that it says cannot be, or the engine refused complex32, the rest of the
    program is not compared.
    """
    if isinstance(ours, float) and isinstance(theirs, (int, float)):
        return None if math.isclose(ours, theirs, rel_tol=rel, abs_tol=near) else f"{path}: {ours} but torch {theirs}"
    if type(ours) is not type(theirs):
        return f"{path}: {ours} but torch {theirs}"
    if isinstance(ours, dict):
        for key in [*theirs, *(k for k in ours if k not in theirs)]:
            if key not in ours or key not in theirs:
                return f"{path}.{key}: only one of them"
            if found := compare(ours[key], theirs[key], f"{path}.{key}", rel, near):
                return found
        return None
    if isinstance(ours, list):
        if path and len(theirs) > 3 and theirs[1] == "raised" and any(words in str(theirs[3]) for words in OWN_WORDS):
            return OWN_FAULT
        if path and len(ours) > 3 and "complex32 is not in Stridescope yet" in str(ours[3]):
            return OWN_FAULT  # the one dtype that the engine refuses
        if ours and isinstance(ours[0], str):
            rel, near = TOLERANCES.get(ours[0], rel), NEAR.get(ours[0], near)
        for position, (a, b) in enumerate(zip(ours, theirs, strict=False)):
            if found := compare(a, b, f"{path}[{position}]", rel, near):
                return None if found is OWN_FAULT and not path else found
        return None if len(ours) == len(theirs) else f"{path}: {len(ours)} entries but torch {len(theirs)}"
    return None if ours == theirs else f"{path}: {ours} but torch {theirs}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("module")
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--family", choices=("autograd", "ops", "calls"), default="autograd")
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--kinds", default=",".join(STEPS))
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    torch = importlib.import_module(options.module)
    for seed in range(options.first, options.first + options.count):
        seen = observe(torch, seed, options.steps, options.kinds.split(","), options.family)
        if options.show:
            for entry in seen:
                print(json.dumps(entry))
        else:
            print(json.dumps(seen), flush=True)  # what was seen so far counts when a later program crashes


if __name__ == "__main__":
    sys.exit(main())
