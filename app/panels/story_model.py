"""The explanation strip as data: what the step did, in words.

A stop lies before an op or line runs, so the strip tells what happened up to there and names what comes next.
"""

from __future__ import annotations

import dataclasses
import html
import math
import re
from typing import Any

import numpy as np

from stridescope.app.moment import Moment
from stridescope.app.origins import expression_of, source_text
from stridescope.app.selection import module_words, tensor_name, views_of
from stridescope.app.text import tr
from stridescope.app.values import list_text, shape_text, short_dtype, size_text, sizes_in_words
from stridescope.engine import events as ev
from stridescope.engine.recording.model import Span, State

MOST_EVENTS = 4000  # of one op: a long loop inside an op is told by its first events


@dataclasses.dataclass(frozen=True)
class Story:
    """A heading in the accent, a paragraph, and a quieter one; the paragraphs are a little HTML (only <b>)."""

    title: str
    body: str
    hint: str

    def words(self) -> str:
        """Return the story without marks, for a screen reader."""
        return re.sub(r"<[^>]+>", "", f"{self.title}. {self.body} {self.hint}")


def story(moment: Moment) -> Story:
    """Return what happened at this moment."""
    if moment.step < 0:
        return Story(tr("Before the first step"), tr("Nothing has run yet."), tr("Step with F10, or press F5 to run."))
    event = moment.recording.event(moment.step)
    if isinstance(event, ev.ScriptEnded):
        return _ended(moment, event)
    if isinstance(event, ev.ExceptionRaised):
        return _failure(event.kind, event.message, event.line)
    if event.family == "backward":
        return _backward(moment, event)
    if event.family == "module":
        return Story(_esc(sentence(event)), _esc(module_words(moment.state, getattr(event, "module", 0))), "")
    return _op(moment, event)


def sentence(event: ev.Event) -> str:
    """Return the event's own sentence, its fields filled in."""
    fields = {f.name: _field(getattr(event, f.name)) for f in dataclasses.fields(event)}  # type: ignore[arg-type]
    if isinstance(event, ev.NameBound) and event.tensor:
        fields["text"] = tr("tensor #{id}", id=event.tensor)
    told = tr(event.sentence, **fields) if fields else tr(event.sentence)
    return sizes_in_words(told) if event.family == "memory" else told


def _field(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(str(v) for v in value)
    if isinstance(value, bytes):
        return size_text(len(value))
    return f"{value:.4g}" if isinstance(value, float) and math.isfinite(value) else str(value).rstrip("\n")


def _esc(text: object) -> str:
    return html.escape(str(text))


def _bold(text: object) -> str:
    return f"<b>{_esc(text)}</b>"


def op_title(op: str) -> str:
    """Return an op's name without its name space."""
    return op.rpartition("::")[2]


def _ended(moment: Moment, event: ev.ScriptEnded) -> Story:
    state = moment.state
    if state.error is not None:
        kind, message, span = state.error
        return _failure(kind, message, span.line)
    facts = tr(
        "{tensors} tensors and {nodes} nodes are still alive.", tensors=len(state.tensors), nodes=len(state.nodes)
    )
    return Story(
        tr("The script ended with status {status}", status=event.status), facts, tr("Step back, or drag the timeline.")
    )


def _failure(kind: str, message: str, line: int) -> Story:
    title = tr("Line {line} failed", line=line)
    return Story(title, f"{_bold(kind)}: {_esc(message)}", tr("Step back to see what led there."))


# ---- an op -----------------------------------------------------------------------------------------------------


def _op(moment: Moment, event: ev.Event) -> Story:
    """Tell the op up to the step; at a stop before the next one, also what comes next."""
    begins = isinstance(event, (ev.OpBegan, ev.LineReached))
    last = moment.step - 1 if begins else moment.step
    told = _events_of_op(moment, last)
    coming = _coming(moment, event) if begins else ""
    if not told:
        return Story(coming or sentence(event), "" if coming else _esc(type(event).__name__), "")
    parts = [part for part in _op_sentences(moment, told, last) if part]
    hint = coming or _warning(moment.state, told) or _esc(sentence(event))
    return Story(_heading(moment, event, told), " ".join(parts), hint)


def _events_of_op(moment: Moment, last: int) -> list[ev.Event]:
    """Return the events from the last OpBegan up to ``last``, without those of a line that began after it."""
    ops = moment.recording.ops()
    at = int(np.searchsorted(ops, last, side="right")) - 1
    if at < 0:
        return []
    first = int(ops[at])
    lines = moment.recording.lines()
    reached = lines[(lines > first) & (lines <= last)]
    end = int(reached[0]) - 1 if len(reached) else last
    return moment.recording.events(first, min(end, first + MOST_EVENTS))


def _coming(moment: Moment, event: ev.Event) -> str:
    if isinstance(event, ev.LineReached):
        return tr("Line {line} runs next.", line=event.line)
    assert isinstance(event, ev.OpBegan)
    inputs = ", ".join(_described(moment.state, t) for t in event.inputs if t in moment.state.tensors)
    op, module = _bold(op_title(event.op)), moment.state.forwards[-1] if moment.state.forwards else 0
    words = tr("Next: {op} on {inputs}.", op=op, inputs=inputs) if inputs else tr("Next: {op}.", op=op)
    if where := module_words(moment.state, module):
        words += " " + tr("In the forward of {module}.", module=_esc(where))
    return words


def _described(state: State, tensor: int) -> str:
    found = state.tensors[tensor]
    name = tensor_name(state, tensor)
    shape = f"{shape_text(found.sizes)} {short_dtype(found.dtype)}"
    return shape if "#" in name else f"{_bold(name)} ({shape})"


def _heading(moment: Moment, event: ev.Event, told: list[ev.Event]) -> str:
    """Return the op's heading, after its node in a backward pass; or while the allocator decides, what is wanted."""
    backward = moment.state.backward
    if backward is not None and backward.running and backward.current in moment.state.nodes:
        return f"{moment.state.nodes[backward.current].name} · {_op_heading(told)}"
    asked = next((e for e in told if isinstance(e, ev.BlockRequested)), None)
    if asked is None or event.family != "memory" or isinstance(event, (ev.StorageMade, ev.StorageWritten)):
        return _op_heading(told)
    began = told[0]
    assert isinstance(began, ev.OpBegan)
    text = source_text(moment.recording, Span(began.source, began.line, began.column, began.end_line, began.end_column))
    return tr(
        "Allocator: {size} requested by {code}", size=size_text(asked.size), code=_esc(text or op_title(began.op))
    )


def _op_heading(told: list[ev.Event]) -> str:
    """Return ``relu: a new tensor, a new node``."""
    assert isinstance(told[0], ev.OpBegan)
    facts = {
        tr("refused"): any(isinstance(e, ev.OpFailed) for e in told),
        tr("a view, no byte moves"): _views(told),
        tr("a new tensor"): bool(_fresh(told)),
        tr("a new node"): bool(_nodes(told)),
        tr("a write in place"): any(isinstance(e, ev.VersionBumped) for e in told),
    }
    name = op_title(told[0].op)
    found = ", ".join(words for words, true in facts.items() if true)
    return f"{name}: {found}" if found else name


def _fresh(told: list[ev.Event]) -> list[ev.TensorMade]:
    storages = {e.storage for e in told if isinstance(e, ev.StorageMade)}
    return [e for e in told if isinstance(e, ev.TensorMade) and e.storage in storages]


def _views(told: list[ev.Event]) -> list[ev.TensorMade]:
    storages = {e.storage for e in told if isinstance(e, ev.StorageMade)}
    return [e for e in told if isinstance(e, ev.TensorMade) and e.storage not in storages]


def _nodes(told: list[ev.Event]) -> list[ev.NodeMade]:
    return [e for e in told if isinstance(e, ev.NodeMade) and e.name != "AccumulateGrad"]


def _op_sentences(moment: Moment, told: list[ev.Event], last: int) -> list[str]:
    began = told[0]
    assert isinstance(began, ev.OpBegan)
    name = _result_name(moment, told, last)
    return [
        *(_esc(sentence(e)) for e in told if isinstance(e, (ev.OpFailed, ev.CopyMade, ev.DtypePromoted))),
        *(_view_sentence(moment.state, e, name) for e in _views(told)[:1]),
        *(_fresh_sentence(e, name) for e in _fresh(told)[:1]),
        _node_sentence(moment, began, told),
        *_allocator_sentences(told),
        *(_written_sentence(moment.state, e) for e in told if isinstance(e, ev.VersionBumped)),
    ]


def _written_sentence(state: State, bumped: ev.VersionBumped) -> str:
    """Say whose version rose: views share it, so the first of them that has a name speaks for all."""
    sharing = (t for t in state.tensors.values() if t.counter == bumped.counter and t.names)
    named = next(sharing, None)
    if named is None:
        return _esc(sentence(bumped))
    name = _bold(tensor_name(state, named.id))
    return tr("An in-place write raises the version of {name} to {version}.", name=name, version=bumped.version)


def _result_name(moment: Moment, told: list[ev.Event], last: int) -> str:
    """Return the name of what the op gave: its variable, else the source text that made it."""
    for event in told:
        if isinstance(event, ev.TensorMade) and event.tensor in moment.state.tensors:
            name = tensor_name(moment.state, event.tensor)
            if "#" not in name:
                return name
    if moment.state.backward is not None and moment.state.backward.running:
        return tr("the result")  # the source text is that of the call of backward
    text = expression_of(moment.recording, last)
    return text if text and len(text) < 60 else tr("the result")


def _view_sentence(state: State, made: ev.TensorMade, name: str) -> str:
    views = [view for view in views_of(state, made.storage) if view.names and view.id < made.tensor]
    base = views[0].names[0] if views else tr("storage {id}", id=made.storage)
    return tr(
        "{name} looks into the bytes of {base}: {shape}, stride ({strides}), offset {offset}.",
        name=_bold(name), base=_bold(base), shape=shape_text(made.sizes), strides=list_text(made.strides).strip("()"),
        offset=made.offset,
    )  # fmt: skip


def _fresh_sentence(made: ev.TensorMade, name: str) -> str:
    count = math.prod(made.sizes)
    return tr(
        "{name} gets its own storage ({n} × {dtype}).",
        name=_bold(name),
        n=count,
        dtype=made.dtype.removeprefix("torch."),
    )


def _node_sentence(moment: Moment, began: ev.OpBegan, told: list[ev.Event]) -> str:
    nodes = _nodes(told)
    if not nodes:
        return ""
    node = nodes[-1]
    cause = next((t for t in began.inputs if t in moment.state.tensors and moment.state.tensors[t].requires_grad), 0)
    name = tensor_name(moment.state, cause) if cause else ""
    joins = (
        tr("Because {cause} requires grad, {node} joins the graph", cause=_bold(name), node=_bold(node.name))
        if name and "#" not in name
        else tr("{node} joins the graph", node=_bold(node.name))
    )
    kept = [e for e in told if isinstance(e, ev.TensorSaved) and e.node == node.node]
    if not kept:
        return joins + tr(".")
    what = ", ".join(tr("{field} at version {v}", field=_bold(e.field), v=e.version) for e in kept)
    return joins + " " + tr("and keeps {what}.", what=what)


def _allocator_sentences(told: list[ev.Event]) -> list[str]:
    """Return the allocator's decisions of this op; sizes as people say them."""
    kinds = (ev.BlockRequested, ev.BlockSplit, ev.BlockKeptWhole, ev.SegmentAllocated, ev.CacheFlushed, ev.OutOfMemory)
    return [_esc(sentence(e)) for e in told if isinstance(e, kinds)][:4]


def _warning(state: State, told: list[ev.Event]) -> str:
    """Return what would go wrong with what was just made, if anything can be said."""
    for event in told:
        if isinstance(event, ev.TensorSaved) and event.is_output:
            name = tensor_name(state, event.tensor) if event.tensor in state.tensors else tr("the result")
            return tr(
                "Changing {name} in place now would raise its version to {v}, and backward would refuse.",
                name=_esc(name), v=event.version + 1,
            )  # fmt: skip
    return ""


# ---- backward --------------------------------------------------------------------------------------------------


def _backward(moment: Moment, event: ev.Event) -> Story:
    state = moment.state
    node = state.nodes.get(getattr(event, "node", 0))
    name = node.name if node else tr("the node")
    if isinstance(event, ev.NodeBegan):
        return Story(tr("Backward: {name} runs", name=name), _runs(moment, event, name), _queue_hint(state))
    if isinstance(event, ev.NodeReady):
        body = tr("All gradients for {name} have arrived (dependencies 0): it joins the ready queue.", name=_bold(name))
        return Story(tr("Backward: {name} is ready", name=name), body, _queue_hint(state))
    if isinstance(event, ev.GradientSent):
        return Story(tr("Backward: a gradient travels on"), _sent(state, event, name), _queue_hint(state))
    if isinstance(event, ev.GradAccumulated):
        return Story(tr("Backward: the leaf gets its gradient"), _accumulated(state, event), sentence(event))
    return Story(tr("Backward"), _esc(sentence(event)), _queue_hint(state))


def _runs(moment: Moment, event: ev.NodeBegan, name: str) -> str:
    state = moment.state
    node = state.nodes.get(event.node)
    parts = [tr("All its gradients have arrived (dependencies 0).")]
    if node is not None and node.variable:
        owner = tensor_name(state, node.variable)
        parts.append(tr("{name} adds what arrived to {leaf}.", name=_bold(name), leaf=_bold(f"{owner}.grad")))
    elif node is not None:
        targets = [state.nodes[t].name for t, _ in node.edges if t in state.nodes]
        if targets:
            parts.append(tr("It computes the gradients for {targets}.", targets=", ".join(_bold(t) for t in targets)))
        if node.saved and not node.freed:
            parts.append(tr("It reads {what}.", what=", ".join(_bold(s.field) for s in node.saved)))
    return " ".join(parts)


def _sent(state: State, event: ev.GradientSent, name: str) -> str:
    receiver = state.nodes.get(event.receiver)
    target = receiver.name if receiver else tr("the node")
    body = tr("{source} sends a gradient to {target}.", source=_bold(name), target=_bold(target))
    if event.summed:
        body += " " + tr("It is added to one that was there already.")
    if event.waiting:
        body += " " + tr("{target} still waits for {n}.", target=_bold(target), n=event.waiting)
    return body


def _accumulated(state: State, event: ev.GradAccumulated) -> str:
    name = tensor_name(state, event.tensor)
    if event.first:
        return tr("{name} had no .grad: the gradient becomes it.", name=_bold(name))
    return tr("{name} had a .grad already: the gradient is added to it.", name=_bold(name))


def _queue_hint(state: State) -> str:
    if state.backward is None or not state.backward.running:
        return ""
    ready = len(state.backward.ready)
    waiting = sum(1 for node in state.nodes.values() if node.phase == "waiting")
    return tr(
        "{ready} ready, {waiting} waiting, {done} done.", ready=ready, waiting=waiting, done=state.backward.nodes_done
    )
