"""The graph picture as data: nodes in layers, edges, gradients on their way, who is ready and who waits."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from stridescope.app.gradients import gradient_words
from stridescope.app.index import index_of
from stridescope.app.moment import Moment
from stridescope.app.origins import op_before
from stridescope.app.panels.graph_place import Place, place_of, stub, stub_place
from stridescope.app.selection import module_words, tensor_name
from stridescope.app.text import tr
from stridescope.app.values import size_text
from stridescope.engine.recording.model import NodeState, Saved, State, TensorState

LABELS_UP_TO = 300  # gradients


@dataclasses.dataclass(frozen=True)
class GraphEdge:
    """An edge from a node to what it consumed; ``label`` names the gradient that went along it."""

    source: int
    target: int
    sent: bool
    going: bool
    label: str = ""


@dataclasses.dataclass(frozen=True)
class NodeFace:
    """What a node shows: ``role`` is "node", "leaf" or "none"; ``phase`` that of the backward pass."""

    title: str
    detail: str
    role: str
    phase: str
    storage: int
    freed: bool
    tip: str


class Queued(NamedTuple):
    """A node that is ready or waits: its name, and how many gradients are still to come, in words."""

    name: str
    awaits: str


@dataclasses.dataclass(frozen=True)
class GraphPicture:
    """Everything the graph panel draws. Faces are made when asked for: a large graph shows few of them."""

    moment: Moment
    place: Place
    sent: dict[tuple[int, int], str]
    now: int
    selected: int
    ready: tuple[Queued, ...]
    waiting: tuple[Queued, ...]
    news: tuple[str, ...]
    title: str

    def face(self, node: int) -> NodeFace:
        """Return what ``node`` shows."""
        state = self.moment.state
        real = self.real(node)
        if not real:
            return _nowhere_face(self.moment, *stub_place(node))
        return _face(state, state.nodes[real], index_of(state).outputs.of(real))

    def real(self, node: int) -> int:
        """Return the node that a place stands for: itself, the shared leaf of a badge, or 0 of a way to nowhere."""
        if node > 0:
            return node
        consumer, slot = stub_place(node)
        return self.moment.state.nodes[consumer].edges[slot][0]

    def edges(self, nodes: Iterable[int]) -> list[GraphEdge]:
        """Return the edges that begin or end at any of ``nodes``."""
        seen = set(nodes)
        sources = seen | {upper for node in seen for upper in self.place.above.get(node, ())}
        found = (edge for source in sorted(sources) if source > 0 for edge in self._edges_of(source))
        return [edge for edge in found if edge.source in seen or edge.target in seen]

    def _edges_of(self, node: int) -> Iterator[GraphEdge]:
        state = self.moment.state
        current = state.backward.current if state.backward is not None and state.backward.running else 0
        for slot, (target, _) in enumerate(state.nodes[node].edges):
            end = target if target in self.place.index else stub(node, slot)
            if end in self.place.index:
                label = self.sent.get((node, target))
                going = target > 0 and label is None and node == current
                yield GraphEdge(node, end, label is not None, going, label or "")

    def words(self) -> str:
        """Return the graph in words, for a screen reader."""
        shown = [n for n in self.place.ids if n > 0][-12:]
        faces = [f"{self.face(n).title} ({self.face(n).detail})" for n in reversed(shown)]
        return "; ".join([tr("{n} nodes", n=len(self.moment.state.nodes)), *faces])


def picture(moment: Moment) -> GraphPicture:
    """Return the graph at this moment."""
    state = moment.state
    return GraphPicture(
        moment=moment,
        place=place_of(moment),
        sent=_sent(moment),
        now=_now(state),
        selected=moment.selection.node,
        ready=_queue(state, "ready"),
        waiting=_queue(state, "waiting"),
        news=_news(moment),
        title=tr("Graph — backward pass {n}", n=state.backward.number)
        if _walking(state) and state.backward
        else tr("Graph"),
    )


def _walking(state: State) -> bool:
    return state.backward is not None and state.backward.running


def _now(state: State) -> int:
    """Return the node that the step is about: the one that runs, else the one that the op just made."""
    if state.backward is not None and state.backward.running:
        return state.backward.current
    return next((node.id for node in _new_nodes(state)), 0)


def _new_nodes(state: State) -> Iterator[NodeState]:
    """Yield the nodes that the current op made, the newest first; nodes stand in the order of their birth."""
    for node in reversed(state.nodes.values()):
        if state.op is None or node.born < state.op.step:
            return
        yield node


def _sent(moment: Moment) -> dict[tuple[int, int], str]:
    """Return the words of the gradients that went along edges in this backward pass, by (node, receiver)."""
    backward = moment.state.backward
    if backward is None:
        return {}
    labels = len(backward.sent) <= LABELS_UP_TO
    return {(s.node, s.receiver): gradient_words(moment, s) if labels else "" for s in backward.sent}


def _face(state: State, node: NodeState, outputs: list[TensorState]) -> NodeFace:
    name = next((t.names[0] for t in outputs if t.names), "")
    leaf = node.name == "AccumulateGrad"
    owner = (
        state.tensors.get(node.variable)
        if leaf
        else next((t for t in outputs if t.names), outputs[0] if outputs else None)
    )
    detail = f"{tensor_name(state, node.variable)} · {tr('leaf')}" if leaf else _detail(state, node, name)
    return NodeFace(
        node.name, detail, "leaf" if leaf else "node", node.phase, owner.storage if owner else 0, node.freed,
        _node_tip(state, node),
    )  # fmt: skip


def _detail(state: State, node: NodeState, name: str) -> str:
    size = size_text(sum(s.nbytes for s in node.saved))
    if node.freed:
        saved = tr("saved: freed") + (f" · {size}" if node.saved else "")
    elif node.saved:
        saved = tr("saved: {what}", what=", ".join(_saved_words(state, s) for s in node.saved)) + f" · {size}"
    else:
        saved = ""
    return " · ".join(part for part in (name, saved) if part)


def _saved_words(state: State, saved: Saved) -> str:
    name = tensor_name(state, saved.tensor)
    named = saved.tensor in state.tensors and not saved.is_output and "#" not in name
    return f"{saved.field} ({name}) v{saved.version}" if named else f"{saved.field} v{saved.version}"


def _node_tip(state: State, node: NodeState) -> str:
    lines = [node.name, tr("made by {op} at step {step}", op=node.op or "autograd", step=node.born)]
    if where := module_words(state, node.module):
        lines.append(tr("in the forward of {module}", module=where))
    if node.sequence_nr >= 0:
        lines.append(tr("sequence number {n}", n=node.sequence_nr))
    lines += [tr("keeps {what}", what=f"{_saved_words(state, s)}, {size_text(s.nbytes)}") for s in node.saved]
    if node.freed:
        lines.append(tr("what it saved is freed: a second backward would fail"))
    return "\n".join(lines)


def _nowhere_face(moment: Moment, node: int, slot: int) -> NodeFace:
    op = op_before(moment.recording, moment.state.nodes[node].born)
    tensor = op.inputs[slot] if op and slot < len(op.inputs) else 0
    name = tensor_name(moment.state, tensor) if tensor in moment.state.tensors else ""
    detail = tr("{name} does not require grad", name=name) if name else tr("no gradient wanted")
    return NodeFace("None", detail, "none", "", 0, False, detail)


def _queue(state: State, phase: str) -> tuple[Queued, ...]:
    if state.backward is None or not state.backward.running:
        return ()
    if phase == "ready":
        shown = [n for n in (state.backward.current, *state.backward.ready) if n in state.nodes]
        return tuple(Queued(state.nodes[n].name, tr("deps {n}", n=0)) for n in dict.fromkeys(shown))
    waiting = [n for n in state.nodes.values() if n.phase == "waiting"]
    return tuple(Queued(n.name, tr("deps {n}", n=n.waiting)) for n in sorted(waiting, key=lambda n: -n.id))


def _news(moment: Moment) -> tuple[str, ...]:
    """Return what the current op added to the graph, in words."""
    state = moment.state
    lines: list[str] = []
    made = [] if _walking(state) else list(itertools.islice(_new_nodes(state), 6))
    for node in reversed(made):
        if node.name != "AccumulateGrad":
            for slot, (target, _) in enumerate(node.edges):
                if target in state.nodes:
                    lines.append(f"{node.name} → {state.nodes[target].name} ({tr('input {n}', n=slot)})")
            lines += [tr("saves {what} for backward", what=_saved_words(state, s)) for s in node.saved]
    return tuple(lines[:6])
