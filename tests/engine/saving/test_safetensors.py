"""safetensors: a file of real PyTorch is read, ours come back, and what cannot be is said."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest
from safetensors import SafetensorError

from stridescope.engine import torch
from stridescope.engine.torch import _safetensors as files

REAL = pathlib.Path(__file__).with_name("pytorch.safetensors")  # made by make_safetensors.py


def test_a_file_of_real_pytorch_is_read():
    found = files.load_file(REAL)
    assert found["weight"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert found["half"].dtype is torch.bfloat16 and found["half"].tolist() == [1.5, -2.0]
    assert found["mask"].tolist() == [True, False]
    assert tuple(found["none"].shape) == (0, 3) and found["none"].dtype is torch.int64


def test_torch_load_reads_it_too():
    assert sorted(torch.load(REAL)) == ["half", "mask", "none", "weight"]


def test_what_is_written_is_read_again():
    state = files.load_file(REAL)
    again = files.load(files.save(state))
    assert all(torch.equal(again[name], tensor) and again[name].dtype is tensor.dtype for name, tensor in state.items())
    assert again.keys() == state.keys()


def test_tied_weights_are_written_once_and_found_again(tmp_path: pathlib.Path):
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Linear(2, 2)
            self.b = self.a

    model, other = Tied(), Tied()
    files.save_model(model, tmp_path / "tied.safetensors")
    assert sorted(files.load_file(tmp_path / "tied.safetensors")) == ["a.bias", "a.weight"]
    assert files.load_model(other, tmp_path / "tied.safetensors") == (set(), [])
    assert torch.equal(other.b.weight, model.a.weight)


@pytest.mark.parametrize(
    ("tensors", "error", "text"),
    [
        ({"w": torch.zeros(2, 3).t()}, ValueError, "You are trying to save a non contiguous tensor: `w`"),
        (dict.fromkeys(("v", "w"), torch.zeros(2)), RuntimeError, "Some tensors share memory"),
        ({"w": 3}, ValueError, "Key `w` is invalid, expected torch.Tensor but received <class 'int'>"),
    ],
)
def test_what_cannot_be_saved_is_refused(tensors, error: type[Exception], text: str):
    with pytest.raises(error, match=text):
        files.save(tensors)


def test_a_file_cut_short_is_refused():
    with pytest.raises(SafetensorError):
        files.load(REAL.read_bytes()[:-3])


def test_names_that_do_not_fit_the_module_are_listed(tmp_path: pathlib.Path):
    files.save_model(torch.nn.Linear(2, 2), tmp_path / "linear.safetensors")
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "0.bias", "0.weight"'):
        files.load_model(torch.nn.Sequential(torch.nn.Linear(2, 2)), tmp_path / "linear.safetensors")


def test_a_script_that_imports_the_library_gets_this_module(tmp_path: pathlib.Path):
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\nfrom safetensors.torch import load_file, save_file\n"
        "save_file({'w': torch.arange(3.)}, 'w.safetensors')\nprint(load_file('w.safetensors'))\n"
    )
    command = [sys.executable, "-P", "-m", "stridescope.app.cli", "run", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=100, check=False)
    assert (done.stdout, done.returncode) == ("{'w': tensor([0., 1., 2.])}\n", 0), done.stderr
