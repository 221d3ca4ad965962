"""Property: in a real session a step is the same whatever way leads there: steps of any grain, jumps, undone, redone.

The session has a GPU (simulated), backward passes with hooks, writes in place, a failed op, and what was typed into the
console; its fork has the same, from another step on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stridescope.app import replay
from stridescope.app.cursor import Cursor
from stridescope.engine.events.grains import GRAINS
from stridescope.engine.recording.machine import Machine
from stridescope.engine.recording.model import State
from stridescope.engine.recording.reader import Recording
from stridescope.engine.recording.state import advance
from stridescope.engine.worker.client import WorkerClient
from stridescope.engine.worker.protocol import Breakpoint, Ended, Evaluate, Evaluated, Run, RunTo, Stopped

SCRIPT = """import torch
torch.manual_seed(0)
device = "cuda"
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)).to(device)
net[0].weight.register_hook(lambda grad: grad * 2)
x = torch.randn(6, 4, device=device)
for step in range(2):
    y = net(x)[:, 0]
    loss = (y * y).mean()
    loss.backward()
    with torch.no_grad():
        for p in net.parameters():
            p -= 0.1 * p.grad
            p.grad = None
try:
    x @ x
except RuntimeError as error:
    print(type(error).__name__)
z = x.t()
z.add_(1)
print("end")
"""
TYPED = ("loss * 2", "kept = [x[0], x.cpu()]", "(x * x).requires_grad_().sum().backward()", "del kept", "1 / 0")


@pytest.fixture(scope="module", params=["session", "fork"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    """A recording of a session in which someone worked with the console."""
    folder = tmp_path_factory.mktemp(request.param)
    script, path = folder / "script.py", folder / "run.stride"
    script.write_text(SCRIPT, encoding="utf-8")
    until = {"until_step": 200} if request.param == "fork" else {}
    breakpoints = (Breakpoint(kind="node", skip=20),)
    with WorkerClient.start(str(script), (), str(path), device="sim", breakpoints=breakpoints, **until) as worker:
        assert until.get("until_step", 0) <= worker.wait(Stopped).step
        worker.send(RunTo(str(script), 11))
        for number, text in enumerate(TYPED):
            _ = worker.wait(Stopped) if number == 0 else None
            worker.send(Evaluate(number, text))
            assert worker.wait(Evaluated).ok is (text != "1 / 0")
        while not isinstance(_go_on(worker), Ended):
            pass
        worker.process.wait(30)
    with Recording.open(path) as recording:
        yield recording


def _go_on(worker: WorkerClient) -> Stopped | Ended:
    worker.send(Run())
    return worker.wait((Stopped, Ended))


def seen(state: State) -> str:
    """Everything that a state shows, values included."""
    values = {storage.id: storage.values for storage in state.storages.values()}
    return repr((state.step, state.frames, state.tensors, state.nodes, state.backward, state.op, state.ops)) + repr(
        (state.allocator, state.line, state.source, state.status, state.error, values)
    )


@pytest.fixture(scope="module")
def told(session: Recording) -> list[str]:
    """What there is to see at each step, folded from the first event on without any keyframe."""
    machine, found = Machine(), []
    for event in session.events(0, session.steps - 1):
        advance(machine, [event.pack()])
        found.append(seen(machine.snapshot()))
    return found


STEPS = st.tuples(st.sampled_from(["next", "back"]), st.sampled_from(list(GRAINS)), st.sampled_from(replay.MODES))
JUMPS = st.tuples(st.just("jump"), st.floats(0, 1), st.just(""))
UNDONE = st.tuples(st.sampled_from(["undo", "redo"]), st.just(0.0), st.just(""))


def _moved(recording: Recording, step: int, move: tuple[str, str | float, str]) -> int:
    kind, what, mode = move
    if kind == "jump":
        return round(float(what) * (recording.steps - 1))
    find = replay.next_stop if kind == "next" else replay.previous_stop
    found = find(recording, step, str(what), mode)
    return step if found is None else found


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=st.lists(STEPS | JUMPS | UNDONE, min_size=1, max_size=25), reads=st.integers(0, 3))
def test_whatever_way_leads_to_a_step(
    session: Recording, told: list[str], moves: list[tuple[str, str | float, str]], reads: int
) -> None:
    cursor = Cursor()
    cursor.advance(session.steps - 1)
    past, future = [cursor.view], list[int]()
    for move in moves:
        if move[0] == "undo":
            future += [past.pop()] if len(past) > 1 else []
        elif move[0] == "redo":
            past += [future.pop()] if future else []
        else:
            past, future = [*past, _moved(session, cursor.view, move)], []
        cursor.look(past[-1])
        for _ in range(reads):
            session.approach(cursor.view, 0.0)
        assert seen(session.state(cursor.view)) == told[cursor.view]


def test_the_session_has_what_it_is_for(session: Recording) -> None:
    kinds = {type(event).__name__ for event in session.events(0, session.steps - 1)}
    wanted = {"BlockAllocated", "NodeBegan", "HookRan", "GradAccumulated", "VersionBumped", "OpFailed"}
    assert wanted <= kinds and "<console>" in {source.path for source in session.sources.values()}
    assert Path(str(session.meta["script"])).name == "script.py"
