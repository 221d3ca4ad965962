"""What of PyTorch is not here says so by name; what scripts ask before they use it is answered."""

from __future__ import annotations

import importlib
import pathlib
import subprocess
import sys
from collections.abc import Callable

import pytest

import stridescope.engine.torch as torch
from stridescope.engine.torch import _absent, _not_yet
from stridescope.engine.torch._more_names import MORE

Run = Callable[[str], tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: pathlib.Path) -> Run:
    """Run a script as ``stridescope run`` does."""

    def run(source: str) -> tuple[int, str, str]:
        script = tmp_path / "script.py"
        script.write_text(source)
        command = [sys.executable, "-P", "-m", "stridescope.app.cli", "run", str(script)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.mark.parametrize("name", _not_yet.FUNCTIONS)
def test_a_missing_function_says_so(name: str) -> None:
    with pytest.raises(NotImplementedError, match=rf"^torch\.{name} is not in Stridescope yet$"):
        getattr(torch, name)(1)


@pytest.mark.parametrize("name", [f"{module}.{name}" for module, names in MORE.items() for name in names.split()])
def test_a_name_of_pytorchs_says_so(name: str) -> None:
    module, _, leaf = name.rpartition(".")
    with pytest.raises(NotImplementedError, match=rf"^{name} is not in Stridescope yet$"):
        getattr(importlib.import_module(f"stridescope.engine.{module}"), leaf)


@pytest.mark.parametrize("module", [*_absent.MODULES])
def test_a_missing_module_says_so(module: str) -> None:
    with pytest.raises(NotImplementedError, match=rf"^torch\.{module}\.anything is not in Stridescope yet$"):
        getattr(torch, module).anything  # noqa: B018  # asking is the point


def test_a_wrong_name_stays_an_attribute_error() -> None:
    assert not hasattr(torch, "no_such_name") and not hasattr(torch.backends, "no_such_name")


def test_missing_modules_can_be_imported(run: Run) -> None:
    modules = ", ".join(f"torch.{name}" for name in _absent.MODULES)
    asked = "torch.jit.is_scripting(), torch.xpu.is_available(), torch.mps.device_count()"
    status, out, errors = run(f"import {modules}, torch.fx.proxy\nprint({asked})\nimport torch.nothing\n")
    assert (status, out) == (1, "False False 0\n")
    assert errors.endswith("ModuleNotFoundError: No module named 'torch.nothing'\n")


@pytest.mark.parametrize(
    "module", ["utils.tensorboard", "utils.bottleneck", "nn.quantized.dynamic", "utils.data.datapipes"]
)
def test_missing_parts_of_our_modules_can_be_imported(module: str, run: Run) -> None:
    status, _, errors = run(f"from torch.{module} import Something\n")
    assert status == 1
    assert errors.endswith(f"NotImplementedError: torch.{module}.Something is not in Stridescope yet\n")


def test_decorators_of_jit_that_only_mark_are_harmless(run: Run) -> None:
    source = "import torch\n@torch.jit.unused\ndef f(x):\n    return x + 1\nprint(f(1), torch.jit.annotate(int, 3))\n"
    assert run(source) == (0, "2 3\n", "")


COMPILED = """\
import torch
m = torch.compile(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()))
print(m, list(m.state_dict()), m.training, m.eval().training, m._orig_mod.training)
m.foo = 3
print(m._orig_mod.foo, [n for n, _ in m.named_parameters()])
@torch.compile(backend="eager", fullgraph=True)
def g(x):
    return x + 1
print(g(torch.ones(2)))
"""


def test_compiled_models_run_as_they_are_written(run: Run) -> None:
    status, out, errors = run(COMPILED)
    assert status == 0 and errors.count("torch.compile: Stridescope runs the model as it is written") == 1
    assert out == (
        "OptimizedModule(\n  (_orig_mod): Sequential(\n    (0): Linear(in_features=2, out_features=2, bias=True)\n"
        "    (1): ReLU()\n  )\n) ['_orig_mod.0.weight', '_orig_mod.0.bias'] True False False\n"
        "3 ['_orig_mod.0.weight', '_orig_mod.0.bias']\ntensor([2., 2.])\n"
    )


def test_switches_of_backends_keep_what_they_are_told() -> None:
    with torch.backends.cudnn.flags(enabled=False, benchmark=True, deterministic=True):
        assert torch.backends.cudnn.benchmark and torch.backends.cudnn.deterministic
    assert not torch.backends.cudnn.benchmark and torch.backends.cudnn.enabled
    assert not torch.backends.mps.is_available() and torch.backends.cudnn.version() is None
    torch.backends.cuda.enable_flash_sdp(False)
    assert not torch.backends.cuda.flash_sdp_enabled()
    torch.backends.cuda.enable_flash_sdp(True)


SPAWNED = """\
import torch, torch.multiprocessing as mp

def work(rank, queue, fails):
    if rank == fails:
        raise ValueError(f"rank {rank}")
    queue.put(torch.full((2,), float(rank)))

if __name__ == "__main__":
    queue = mp.get_context("spawn").SimpleQueue()
    mp.spawn(work, (queue, -1), nprocs=2)
    print(sorted(queue.get().tolist() for _ in range(2)))
    try:
        mp.spawn(work, (queue, 1), nprocs=2)
    except mp.ProcessRaisedException as error:
        print(error.error_index, str(error).strip().splitlines()[-1])
"""


def test_processes_are_spawned_and_their_errors_come_back(run: Run) -> None:
    assert run(SPAWNED) == (0, "[[0.0, 0.0], [1.0, 1.0]]\n1 ValueError: rank 1\n", "")


def test_a_matrix_of_low_rank_is_found_again() -> None:
    torch.manual_seed(0)
    A = torch.randn(20, 3, dtype=torch.float64) @ torch.randn(3, 8, dtype=torch.float64)
    for matrix in (A, A.mT):
        U, S, V = torch.svd_lowrank(matrix, q=5)
        torch.testing.assert_close(U @ S.diag() @ V.mT, matrix)
        torch.testing.assert_close(S[:3], torch.linalg.svdvals(matrix)[:3])
    U, S, V = torch.pca_lowrank(A, q=3)
    torch.testing.assert_close(U @ S.diag() @ V.mT, A - A.mean(0))
    with pytest.raises(ValueError, match=r"q\(=9\) must be non-negative integer and not greater than min\(m, n\)=8"):
        torch.pca_lowrank(A, q=9)
