"""Property: an expression is worth in the past what the script itself said when it stood there, to the last letter."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stridescope.app.recorded_values import answer
from stridescope.engine.recording.model import State
from stridescope.engine.recording.reader import Recording
from stridescope.engine.worker.client import WorkerClient
from stridescope.engine.worker.protocol import Ended, Evaluate, Evaluated, Run, RunTo, Stopped

SCRIPT = """import torch
torch.manual_seed(0)
x = torch.randn(3, 4)
n = torch.arange(6).reshape(2, 3)
w = torch.ones(3, requires_grad=True)
y = (w * 2).sum()
y.backward()
d = torch.tensor([1.5, -2.5], dtype=torch.float64)
h = torch.tensor([0.1, 200.0], dtype=torch.bfloat16)
g = torch.ones(2, device="cuda")
c = torch.tensor([1 + 2j])
many = torch.arange(2000.)
e = torch.zeros(0)
epoch, name, pair = 3, "it's", (1, "two")
print("end")
"""
EXPRESSIONS = (
    "x", "x.t", "n", "w", "y", "w.grad", "d", "h", "g", "c", "many", "e", "epoch", "name", "pair", "x.shape",
    "x.shape[0]", "x.size()", "n.stride()", "y.shape", "len(x)", "d.dtype", "g.device", "w.requires_grad", "w.is_leaf",
    "w._version", "x.ndim", "x.T", "n.T.shape", "x[0]", "x[1:, ::2]", "x[0, 1]", "x.std()", "d.std()", "x.mean()",
    "x.sum()", "n.sum()", "n.max()", "x.argmax()", "n.tolist()", "n > 2", "(n > 2).all()", "x.mean().item()", "x + 1",
    "n * 2", "n ** 2", "d ** 2", "2 ** 10", "2 ** 0.5", "-n", "n % 4", "n // 2", "n @ n.T", "abs(d)", "n + 0.5",
    "n / 2", "n * x[:2, :3]", "n ** 0.5", "x.dtype",
    "x.device", "x is None", "w.grad is None", "epoch > 2 and name",
    "not epoch", "x.numel()", "[epoch, name]",
)  # fmt: skip
UNTOLD = {"x.t"}  # the past has no bound methods


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[State, dict[str, str]]]:
    """The state before the last line, and what the script said there."""
    folder = tmp_path_factory.mktemp("recorded")
    script, path = folder / "script.py", folder / "run.stride"
    script.write_text(SCRIPT, encoding="utf-8")
    said: dict[str, str] = {}
    with WorkerClient.start(str(script), (), str(path), device="sim") as worker:
        worker.wait(Stopped)
        worker.send(RunTo(str(script), SCRIPT.count("\n")))
        step = worker.wait(Stopped).step
        for number, text in enumerate(EXPRESSIONS):
            worker.send(Evaluate(number, text, recorded=False))
            found = worker.wait(Evaluated)
            assert found.ok, found.text
            said[text] = found.text.strip()
        worker.send(Run())
        worker.wait(Ended)
        worker.process.wait(30)
    with Recording.open(path) as recording:
        yield recording.state(step), said


@pytest.mark.parametrize("text", [text for text in EXPRESSIONS if text not in UNTOLD])
def test_the_past_says_what_the_script_said(session: tuple[State, dict[str, str]], text: str) -> None:
    state, said = session
    assert answer(state, text) == (said[text], True)


@pytest.mark.parametrize("text", ["x.t", "9 ** 9 ** 9", "'a' * 10 ** 9", "print(x)", "x.add_(1)"])
def test_what_would_have_to_be_run_is_refused(session: tuple[State, dict[str, str]], text: str) -> None:
    assert not answer(session[0], text)[1]
