"""What the explanation strip says of backward passes, of writes through views and of lines without ops."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from stridescope.app.moment import Moment
from stridescope.app.panels import editor_model
from stridescope.app.panels.graph_model import picture
from stridescope.app.panels.story_model import Story, sentence, story
from stridescope.app.selection import follow
from stridescope.engine import events as ev
from stridescope.engine.recording.reader import Recording

SCRIPT = Path(__file__).parents[1] / "scripts" / "told.py"


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, record_file: Callable[[Path, Path], Recording]) -> Recording:
    recording = record_file(SCRIPT, tmp_path_factory.mktemp("told"))
    assert recording.meta["status"] == 1  # its last line fails
    return recording


def at(recording: Recording, step: int) -> Moment:
    state = recording.state(step)
    return Moment(recording, state, recording.steps - 1, follow(state))


def before(recording: Recording, text: str) -> Story:
    """What is said when the line that holds ``text`` is about to run for the first time."""
    lines = SCRIPT.read_text(encoding="utf-8").splitlines()
    number = next(n for n, line in enumerate(lines, 1) if text in line)
    reached = recording.steps_of(ev.LineReached).tolist()
    return story(at(recording, next(s for s in reached if recording.event(s).line == number)))  # type: ignore[attr-defined]


def plain(text: str) -> str:
    return re.sub(r"<[^>]+>", "", text)


def test_a_write_through_a_view_tells_of_both_nodes(told: Recording) -> None:
    body = plain(before(told, "loss = y.exp()").body)
    assert (
        "v is a view: the write joins the history of y as CopySlices, and v now comes from AsStridedBackward0." in body
    )


def test_a_pass_that_is_over_tells_what_it_did(told: Recording) -> None:
    said = before(told, "print(x.grad")
    assert said.title == "Backward pass 1 is over"
    assert re.fullmatch(r"\d nodes ran\. Gradients arrived in x\.grad\.", plain(said.body))


def test_a_pass_that_begins_counts_no_nodes_before_they_are_known(told: Recording) -> None:
    began = at(told, int(told.steps_of(ev.BackwardBegan)[0]))
    assert (story(began).title, story(began).hint) == ("Backward", "")
    shown = editor_model.picture(began)
    assert shown is not None and shown.where.endswith(" · backward pass")
    first = at(told, int(told.steps_of(ev.NodeBegan)[0]))
    assert re.search(r" · backward node 1 of [1-9]", editor_model.picture(first).where)  # type: ignore[union-attr]


def test_a_line_without_ops_tells_what_it_printed(told: Recording) -> None:
    said = before(told, "a = torch.ones")
    assert said.title.startswith("Line ") and plain(said.body) == "The script printed: with a dot."


def test_a_pass_that_fails_is_over_and_names_its_node(told: Recording) -> None:
    assert before(told, "print(type(error)").title.startswith("Line ")
    failure = story(at(told, int(told.steps_of(ev.ExceptionRaised)[0])))
    assert failure.hint.startswith("ExpBackward0 was running in the backward pass.")
    assert before(told, "except RuntimeError").title == "Backward pass 2 failed in ExpBackward0"
    moment = at(told, int(told.steps_of(ev.ExceptionRaised)[0]))
    faces = [picture(moment).face(node) for node in picture(moment).place.ids if node > 0]
    assert [face.title for face in faces if face.phase == "failed"] == ["ExpBackward0"]
    assert "ExpBackward0" not in before(told, "raise ValueError").title
    last = story(at(told, int(told.steps_of(ev.ExceptionRaised)[-1])))
    assert last.title == "Line 23 failed" and last.hint == "Step back to see what led there."


def test_what_a_node_does_without_ops_is_its_own(told: Recording) -> None:
    for step in told.steps_of(ev.NodeBegan).tolist():
        if told.code(step + 1) == ev.StorageMade.code:
            said = story(at(told, step + 2))
            assert said.title.startswith("Backward: ") and "looks into" not in said.body


def test_sentences_end_with_one_full_stop(told: Recording) -> None:
    said = [sentence(told.event(step)) for step in range(told.steps)]
    assert "The script printed: with a dot." in said
    assert "ValueError: the end." in said
    assert not any(re.search(r"[^.]\.\.$", words) for words in said)


def test_a_new_view_of_a_written_tensor_is_no_write(told: Recording) -> None:
    """Each version is told once: a view made later shares it."""
    seen: set[tuple[int, int]] = set()
    for step in told.steps_of(ev.VersionBumped).tolist():
        event = told.event(step)
        assert isinstance(event, ev.VersionBumped) and (event.counter, event.version) not in seen
        seen.add((event.counter, event.version))
    state = told.state(told.steps - 1)
    versions = {name: t.version for t in state.tensors.values() for name in t.names if name in ("m", "later")}
    assert versions == {"m": 1, "later": 1}


def test_no_sentence_is_said_twice(allocator: Recording) -> None:
    for step in range(allocator.steps):
        said = story(at(allocator, step))
        assert not said.hint or said.hint not in said.body
