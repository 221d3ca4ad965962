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
from stridescope.app.panels.reasons import in_words
from stridescope.app.selection import module_words, tensor_name, views_of
from stridescope.app.text import plural, tr
from stridescope.app.values import list_text, shape_text, short_dtype, size_text, sizes_in_words
from stridescope.engine import events as ev
from stridescope.engine.recording.model import Span, State

MOST_EVENTS = 4000  # of one op: a long loop inside an op is told by its first events
MOST_LEAVES = 6  # named at the end of a backward pass
MOST_PRINTED, MOST_NAMES = 200, 4  # characters and names that a line without ops is told by


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
        return _failure(moment, event.kind, event.message, event.line)
    if isinstance(event, ev.OutputWritten) and moment.state.error is not None:  # its traceback
        kind, message, span = moment.state.error
        return _failure(moment, kind, message, span.line)
    if event.family == "backward":
        return _backward(moment, event)
    if event.family == "module":
        return Story(_esc(sentence(event)), _esc(module_words(moment.state, getattr(event, "module", 0))), "")
    return _op(moment, event)


def sentence(event: ev.Event) -> str:
    """Return the event's own sentence, its fields filled in."""
    if isinstance(event, ev.FrameEntered) and not event.function:
        return tr("A module's own code begins.")
    fields = {f.name: _field(getattr(event, f.name)) for f in dataclasses.fields(event)}  # type: ignore[arg-type]
    if event.family == "memory":
        fields |= {name: in_words(fields[name]) for name in ("reason", "verdict") if name in fields}
        fields |= {"pool": _pool(fields["pool"])} if "pool" in fields else {}
    if isinstance(event, ev.NameBound) and event.tensor:
        fields["text"] = tr("tensor #{id}", id=event.tensor)
    told = _one_full_stop(tr(event.sentence, **fields) if fields else tr(event.sentence))
    return sizes_in_words(told) if event.family == "memory" else told


def _pool(name: str) -> str:
    kind, _, private = name.partition(" ")
    return " ".join(filter(None, (tr("small") if kind == "small" else tr("large"), private)))


def _one_full_stop(text: str) -> str:
    """Return the sentence without the full stop behind a text that brought its own; an ellipsis stays."""
    return text[:-1] if text.endswith(("..", ".。")) and not text.endswith("...") else text


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


def _joined(*sentences: str) -> str:
    """Return the sentences that there are in a row, as the language sets them."""
    return tr(" ").join(filter(None, sentences))


def op_title(op: str) -> str:
    """Return an op's name without its name space."""
    return op.rpartition("::")[2]


def _ended(moment: Moment, event: ev.ScriptEnded) -> Story:
    state = moment.state
    if state.error is not None:
        kind, message, span = state.error
        return _failure(moment, kind, message, span.line)
    facts = tr(
        "{tensors} tensors and {nodes} nodes are still alive.", tensors=len(state.tensors), nodes=len(state.nodes)
    )
    return Story(
        tr("The script ended with status {status}", status=event.status), facts, tr("Step back, or drag the timeline.")
    )


def _failure(moment: Moment, kind: str, message: str, line: int) -> Story:
    title, hint = tr("Line {line} failed", line=line), tr("Step back to see what led there.")
    state, recording = moment.state, moment.recording
    failed = state.nodes.get(state.backward.failed) if state.backward else None
    raised = _before(recording.steps_of(ev.ExceptionRaised), moment.step)
    ended, reached = (_before(recording.steps_of(each), raised) for each in (ev.BackwardEnded, ev.LineReached))
    if failed is not None and ended > reached:  # the pass that failed is what this line ran
        hint = _joined(tr("{node} was running in the backward pass.", node=_esc(failed.name)), hint)
    return Story(title, f"{_bold(kind)}: {_esc(message)}", hint)


# ---- an op -----------------------------------------------------------------------------------------------------


def _op(moment: Moment, event: ev.Event) -> Story:
    """Tell what was done up to the step; at a stop before the next op or line, also what comes next."""
    begins = isinstance(event, (ev.OpBegan, ev.LineReached))
    last = moment.step - 1 if begins else moment.step
    while begins and last >= 0 and moment.recording.code(last) == ev.LineReached.code:
        last -= 1  # at the first op of a line, what was done before the line is still news
    told = _latest(moment, last)
    coming = _coming(moment, event) if begins else ""
    if not told:
        return Story(coming or sentence(event), "", "")
    if isinstance(told[0], ev.LineReached):
        title = coming or tr("Line {line} runs.", line=told[0].line)
        body = _joined(*_line_sentences(told[1:]))
        return Story(title, body, "" if coming else _not_yet_in(body, event))
    body = _joined(*_op_sentences(moment, told, last))
    if told[0].family == "backward":
        around = _backward(moment, told[0])
        return Story(around.title, _joined(around.body, body), coming or _not_yet_in(body, event))
    hint = coming or _warning(moment, told, last) or _not_yet_in(body, event)
    return Story(_heading(moment, event, told), body, hint)


def _not_yet_in(body: str, event: ev.Event) -> str:
    """Return the event's own sentence, unless the paragraph above it has said it."""
    own = _esc(sentence(event))
    return "" if own in body else own


# An op, a node and a line are told from one of these on: what began last.
_BEGINNINGS = (ev.OpBegan, ev.LineReached, ev.BackwardBegan, ev.NodeBegan, ev.NodeEnded, ev.BackwardEnded)


def _latest(moment: Moment, last: int) -> list[ev.Event]:
    """Return the events up to ``last`` that are told together: what began last, and all since then."""
    began = _before(moment.recording.steps_of(*_BEGINNINGS), last)
    return moment.recording.events(began, min(last, began + MOST_EVENTS)) if began >= 0 else []


def _line_sentences(told: list[ev.Event]) -> list[str]:
    """Return what a line without ops did: what it printed and what its names stand for now."""
    printed = "".join(e.text for e in told if isinstance(e, ev.OutputWritten)).strip()
    cut = printed if len(printed) <= MOST_PRINTED else printed[:MOST_PRINTED] + "…"
    bound = [_esc(sentence(e)) for e in told if isinstance(e, (ev.NameBound, ev.ModuleNamed))]
    return ([_esc(tr(ev.OutputWritten.sentence, text=cut))] if printed else []) + bound[:MOST_NAMES]


def _coming(moment: Moment, event: ev.Event) -> str:
    if isinstance(event, ev.LineReached):
        return tr("Line {line} runs next.", line=event.line)
    assert isinstance(event, ev.OpBegan)
    inputs = ", ".join(_described(moment.state, t) for t in event.inputs if t in moment.state.tensors)
    op, module = _bold(op_title(event.op)), moment.state.forwards[-1] if moment.state.forwards else 0
    words = tr("Next: {op} on {inputs}.", op=op, inputs=inputs) if inputs else tr("Next: {op}.", op=op)
    if where := module_words(moment.state, module):
        words = _joined(words, tr("In the forward of {module}.", module=_esc(where)))
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
    source = moment.recording.sources.get(getattr(told[0], "source", 0))
    if source is not None and source.path == "<console>":
        return f"{tr('Console')} · {_op_heading(told)}"
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
    name = _result_name(moment, told, last)
    return [
        *(_esc(sentence(e)) for e in told if isinstance(e, (ev.OpFailed, ev.CopyMade, ev.DtypePromoted))),
        *(_view_sentence(moment.state, e, name) for e in _views(told)[:1]),
        *(_fresh_sentence(e, name) for e in _fresh(told)[:1]),
        _node_sentence(moment, told),
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
        return tr("The result")  # the source text is that of the call of backward
    text = expression_of(moment.recording, last)
    return text if text and len(text) < 60 else tr("The result")


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


def _node_sentence(moment: Moment, told: list[ev.Event]) -> str:
    nodes = _nodes(told)
    if not nodes:
        return ""
    node, inputs = nodes[-1], told[0].inputs if isinstance(told[0], ev.OpBegan) else ()
    known = (moment.state.tensors[t] for t in inputs if t in moment.state.tensors)
    cause = next((tensor for tensor in known if tensor.requires_grad), None)
    name = tensor_name(moment.state, cause.id) if cause else ""
    if len(nodes) > 1 and nodes[0].name == "CopySlices" and cause is not None and cause.base in moment.state.tensors:
        return tr(
            "{view} is a view: the write joins the history of {base} as {copy}, and {view} now comes from {node}.",
            view=_bold(name), base=_bold(tensor_name(moment.state, cause.base)), copy=_bold("CopySlices"),
            node=_bold(node.name),
        )  # fmt: skip
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


def _warning(moment: Moment, told: list[ev.Event], last: int) -> str:
    """Return what would go wrong with what was just made, if anything can be said."""
    for event in told:
        if isinstance(event, ev.TensorSaved) and event.is_output:
            name = tensor_name(moment.state, event.tensor) if event.tensor in moment.state.tensors else "#"
            return tr(
                "Changing {name} in place now would raise its version to {v}, and backward would refuse.",
                name=_esc(_result_name(moment, told, last) if "#" in name else name), v=event.version + 1,
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
    if isinstance(event, ev.NodeEnded):
        return Story(tr("Backward: {name} is done", name=name), "", _queue_hint(state))
    if isinstance(event, ev.BackwardEnded):
        return _over(moment, event)
    return Story(tr("Backward"), _esc(sentence(event)), _queue_hint(state))


def _over(moment: Moment, event: ev.BackwardEnded) -> Story:
    """Say what a pass did: how many nodes ran, and whose gradients it set; or which node broke it off."""
    state, recording = moment.state, moment.recording
    began = _before(recording.steps_of(ev.BackwardBegan), moment.step)
    steps = recording.steps_of(ev.GradAccumulated)
    steps = steps[(steps > began) & (steps <= moment.step)]
    leaves = dict.fromkeys(recording.event(int(step)).tensor for step in steps[:MOST_LEAVES])  # type: ignore[attr-defined]
    names = ", ".join(_bold(f"{tensor_name(state, leaf)}.grad") for leaf in leaves if leaf in state.tensors)
    backward = state.backward
    body = plural(backward.nodes_done if backward else 0, "{n} node ran.", "{n} nodes ran.")
    if names:
        names += " …" if len(steps) > MOST_LEAVES else ""
        body = _joined(body, tr("Gradients arrived in {leaves}.", leaves=names))
    failed = state.nodes.get(backward.failed) if backward else None
    if failed is None:
        return Story(tr("Backward pass {number} is over", number=event.number), body, "")
    return Story(tr("Backward pass {number} failed in {node}", number=event.number, node=failed.name), body, "")


def _before(steps: np.ndarray[Any, Any], last: int) -> int:
    """Return the last of these steps that is not behind ``last``, else -1."""
    at = int(np.searchsorted(steps, last, side="right"))
    return int(steps[at - 1]) if at else -1


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
    return _joined(*parts)


def _sent(state: State, event: ev.GradientSent, name: str) -> str:
    receiver = state.nodes.get(event.receiver)
    target = receiver.name if receiver else tr("the node")
    body = tr("{source} sends a gradient to {target}.", source=_bold(name), target=_bold(target))
    if event.summed:
        body = _joined(body, tr("It is added to one that was there already."))
    if event.waiting:
        body = _joined(body, tr("{target} still waits for {n}.", target=_bold(target), n=event.waiting))
    return body


def _accumulated(state: State, event: ev.GradAccumulated) -> str:
    name = tensor_name(state, event.tensor)
    if event.first:
        return tr("{name} had no .grad: the gradient becomes it.", name=_bold(name))
    return tr("{name} had a .grad already: the gradient is added to it.", name=_bold(name))


def _queue_hint(state: State) -> str:
    if state.backward is None or not state.backward.running:
        return ""
    ready, done = len(state.backward.ready), state.backward.nodes_done
    waiting = sum(1 for node in state.nodes.values() if node.phase == "waiting")
    if not (ready or waiting or done):  # the pass has begun, and its nodes are not counted yet
        return ""
    return tr("{ready} ready, {waiting} waiting, {done} done.", ready=ready, waiting=waiting, done=done)
