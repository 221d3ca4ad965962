"""The recording tells the truth: what a script says of its own tensors is what the state at that step shows."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from stridescope.engine.recording.model import State, TensorState
from stridescope.engine.recording.reader import Recording

SCRIPT = """\
import json
import torch


def tell(**tensors):
    print(json.dumps({
        name: {
            "sizes": list(t.size()),
            "strides": list(t.stride()),
            "offset": t.storage_offset(),
            "dtype": str(t.dtype).removeprefix("torch."),
            "version": t._version,
            "requires_grad": t.requires_grad,
            "grad_fn": type(t.grad_fn).__name__ if t.grad_fn is not None else None,
            "leaf": t.is_leaf,
            "view": t._is_view(),
            "grad": t.grad.tolist() if t.is_leaf and t.grad is not None else None,
            "values": t.detach().tolist(),
        }
        for name, t in tensors.items()
    }))


x = torch.arange(12.0).reshape(3, 4)
row = x[1]
tell(x=x, row=row)
row.mul_(10)
turned = x.t()
tell(x=x, row=row, turned=turned)
w = torch.ones(4, requires_grad=True)
y = x.matmul(w)
tell(x=x, w=w, y=y)
for turn in range(3):
    loss = (x.matmul(w) * y.detach()).sum()
    loss.backward()
    tell(w=w, loss=loss)
x.add_(1)
y = y[:2] * 2
tell(x=x, row=row, turned=turned, w=w, y=y)
del row, turned
z = torch.zeros(2, 3, dtype=torch.int64)
z[0, 1] = 7
z[1] += 2
tell(x=x, z=z)
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    folder = tmp_path_factory.mktemp("truth")
    (folder / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-P", "-m", "stridescope.app.cli", "record", "script.py", "-o", "run.stride"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return Recording.open(pathlib.Path(folder / "run.stride"))


def told(recording: Recording) -> list[tuple[int, dict[str, Any]]]:
    """What the script said, with the step at which it said it."""
    outputs = [output for output in recording.output(recording.steps) if output.text.startswith("{")]
    return [(output.step, json.loads(output.text)) for output in outputs]


def elements(state: State, tensor: TensorState) -> Any:
    """The tensor's elements, read from its storage's bytes by the address formula."""
    storage = state.storages[tensor.storage]
    assert storage.values is not None
    flat = np.frombuffer(storage.values, tensor.dtype)
    strides = [stride * flat.itemsize for stride in tensor.strides]
    return np.lib.stride_tricks.as_strided(flat[tensor.offset :], tensor.sizes, strides).tolist()


def seen(state: State, name: str) -> dict[str, Any]:
    """What the state shows of a tensor of the module, in the words of the script."""
    tensor = state.tensors[state.frames[0].names[name].tensor]
    node = state.nodes.get(tensor.node)
    grad = state.tensors.get(tensor.grad)
    leaf = node is None
    return {
        "sizes": list(tensor.sizes),
        "strides": list(tensor.strides),
        "offset": tensor.offset,
        "dtype": tensor.dtype,
        "version": tensor.version,
        "requires_grad": tensor.requires_grad or node is not None,
        "grad_fn": node.name if node else None,
        "leaf": leaf,
        "view": bool(tensor.base),
        "grad": elements(state, grad) if grad else None,
        "values": elements(state, tensor),
    }


def test_every_state_shows_what_the_script_saw(recording: Recording) -> None:
    story = told(recording)
    assert len(story) == 8
    for step, tensors in [*story, *story[::-1]]:
        state = recording.state(step)
        for name, facts in tensors.items():
            assert {"step": step, "name": name, **seen(state, name)} == {"step": step, "name": name, **facts}


def test_names_that_are_deleted_are_gone(recording: Recording) -> None:
    last = told(recording)[-1][0]
    names = recording.state(last).frames[0].names
    assert "row" not in names and "turned" not in names and names["z"].tensor


def test_tensors_that_nobody_holds_are_freed(recording: Recording) -> None:
    last = told(recording)[-1][0]
    state = recording.state(last)
    held = {name.tensor for frame in state.frames for name in frame.names.values()}
    saved = {saved.tensor for node in state.nodes.values() if not node.freed for saved in node.saved}
    grads = {tensor.grad for tensor in state.tensors.values()}
    bases = {tensor.base for tensor in state.tensors.values()}
    assert [tensor.id for tensor in state.tensors.values() if tensor.id not in held | saved | grads | bases] == []


def test_lines_say_where_the_script_is(recording: Recording) -> None:
    lines = SCRIPT.splitlines()
    for step, tensors in told(recording):
        frame = recording.state(step).frames[0]
        assert "tell(" + ", ".join(f"{name}={name}" for name in tensors) + ")" in lines[frame.line - 1]


def test_every_op_knows_its_expression(recording: Recording) -> None:
    lines, expressions = SCRIPT.splitlines(), set()
    for step in recording.ops().tolist():
        span = recording.state(step).ops[-1].span
        if span.line == span.end_line and span.line:
            expressions.add(lines[span.line - 1][span.column : span.end_column])
    assert {"torch.arange(12.0)", "x[1]", "row.mul_(10)", "x.t()", "x.matmul(w)", "y.detach()"} <= expressions
