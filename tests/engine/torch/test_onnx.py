"""Models in ONNX: the operators of ordinary models, the bytes of the file, and what is refused."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from collections.abc import Callable

import pytest

Run = Callable[[str], str]


@pytest.fixture
def run(tmp_path: pathlib.Path) -> Run:
    """Run a script as ``stridescope run`` does; gives what it prints."""

    def run(source: str) -> str:
        (tmp_path / "script.py").write_text(source, encoding="utf-8")
        command = [sys.executable, "-P", "-m", "stridescope.app.cli", "run", "script.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def fields(data: bytes) -> list[tuple[int, int | bytes]]:
    """The fields of a protocol buffer: numbers as ints, everything else as bytes."""
    found: list[tuple[int, int | bytes]] = []
    place = 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = data[place]
            place += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while place < len(data):
        key = varint()
        if key & 7 == 0:
            found.append((key >> 3, varint()))
            continue
        size = varint() if key & 7 == 2 else 4
        found.append((key >> 3, data[place : place + size]))
        place += size
    return found


def parts(data: bytes, number: int) -> list[bytes]:
    """The messages and texts under a field's number."""
    return [value for field, value in fields(data) if field == number and isinstance(value, bytes)]


BRANCHES = """\
import torch

class ByShape(torch.nn.Module):
    def forward(self, x):
        if x.shape[0] > 1:
            return x[:, 1:]
        return x + 5

class ByValue(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x - 1

def ops(program):
    return [n.op_type for n in program.model.graph if n.op_type != "Constant"]

example = (torch.ones(3, 2),)
print(ops(torch.onnx.export(ByShape().eval(), example, dynamo=True, verbose=False)))
batch = torch.export.Dim("batch")
program = torch.onnx.export(ByShape(), example, dynamic_shapes=({0: batch},), input_names=["pixels"])
print(ops(program), program.model.graph.inputs[0].name, program.model.graph.inputs[0].shape)
try:
    torch.onnx.export(ByValue(), example)
except torch.onnx.TorchExportError as error:
    print(type(error).__name__)

class Odd(torch.nn.Module):
    def forward(self, x):
        return torch.linalg.det(x)

try:
    torch.onnx.export(Odd(), (torch.ones(2, 2),))
except torch.onnx.ConversionError as error:
    print(type(error).__name__, "linalg_det" in str(error))
try:
    torch.onnx.export(ByShape(), example, dynamo=False)
except NotImplementedError as error:
    print(error)
"""


def test_branches_on_sizes_are_lost_and_branches_on_values_refused(run: Run) -> None:
    assert run(BRANCHES).splitlines() == [
        "['Slice']",
        "['Slice'] pixels ('batch', 2)",
        "TorchExportError",
        "ConversionError True",
        "torch.onnx.export(dynamo=False) is not in Stridescope yet",
    ]


MODEL = """\
import torch
import torch.nn as nn

model = nn.Sequential(
    nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(),
    nn.Linear(8, 3), nn.LayerNorm(3), nn.GELU(), nn.Softmax(dim=1),
).eval()
with torch.no_grad():
    model[6].bias.copy_(torch.tensor([1.0, 2.0, 3.0]))
program = torch.onnx.export(model, (torch.zeros(1, 1, 4, 4),), "model.onnx", output_names=["classes"])
print([n.op_type for n in program.model.graph])
print(program.model.graph[0].attributes["pads"], program.model.graph.outputs)
"""


def test_the_file_holds_the_operators_the_parameters_and_the_sizes(run: Run, tmp_path: pathlib.Path) -> None:
    operators = ["Conv", "BatchNormalization", "Relu", "MaxPool", "Flatten", "Gemm", "LayerNormalization", "Gelu",
                 "Softmax"]  # fmt: skip
    assert run(MODEL) == f"{operators}\n[1, 1, 1, 1] [%classes<float32,[1, 3]>]\n"
    data = (tmp_path / "model.onnx").read_bytes()
    (graph,) = parts(data, 7)
    assert [parts(node, 4)[0].decode() for node in parts(graph, 1)] == operators
    written = {parts(tensor, 8)[0].decode(): parts(tensor, 9)[0] for tensor in parts(graph, 5)}
    assert set(written) >= {"0.weight", "1.running_mean", "6.weight", "6.bias"} and len(written["0.weight"]) == 18 * 4
    assert written["6.bias"].hex() == "0000803f0000004000004040"
    assert [parts(value, 1)[0] for number in (11, 12) for value in parts(graph, number)] == [b"input", b"classes"]
    gemm = parts(graph, 1)[operators.index("Gemm")]
    assert parts(gemm, 1)[1:] == [b"6.weight", b"6.bias"]
    assert {parts(a, 1)[0]: dict(fields(a)).get(3) for a in parts(gemm, 5)}[b"transB"] == 1
