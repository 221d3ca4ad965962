"""How graph and backward events move the machine: nodes, saved tensors, gradients on their way."""

from __future__ import annotations

from collections.abc import Callable

from stridescope.engine.events import (
    BackwardBegan,
    BackwardEnded,
    DependenciesCounted,
    Event,
    GradAccumulated,
    GradFnSet,
    GradientSent,
    GradSet,
    NodeBegan,
    NodeEdgesSet,
    NodeEnded,
    NodeFreed,
    NodeMade,
    NodeReady,
    SavedFreed,
    TensorSaved,
    Wire,
)
from stridescope.engine.recording.machine import Machine
from stridescope.engine.recording.model import BackwardState, NodeState, Saved, SentGradient


def _node_made(machine: Machine, wire: Wire) -> None:
    _, node, name, sequence_nr, next_nodes, next_inputs, variable = wire
    edges = tuple(zip(next_nodes, next_inputs, strict=False))
    module = machine.forwards[-1] if machine.forwards else 0
    machine.nodes.put(node, NodeState(node, name, sequence_nr, edges, variable, machine.step, machine.op, module, []))


def _node_edges_set(machine: Machine, wire: Wire) -> None:
    _, node, next_nodes, next_inputs = wire
    if (row := machine.nodes.edit(node)) is not None:
        row.edges = tuple(zip(next_nodes, next_inputs, strict=False))


def _grad_fn_set(machine: Machine, wire: Wire) -> None:
    if (row := machine.tensors.edit(wire[1])) is not None:
        _, _, row.node, row.output_nr = wire


def _tensor_saved(machine: Machine, wire: Wire) -> None:
    if (row := machine.nodes.edit(wire[1])) is not None:
        row.saved.append(Saved(*wire[2:]))


def _saved_freed(machine: Machine, wire: Wire) -> None:
    if (row := machine.nodes.edit(wire[1])) is not None:
        row.freed = True


def _node_freed(machine: Machine, wire: Wire) -> None:
    machine.nodes.pop(wire[1])


def _set_phase(machine: Machine, node: int, phase: str) -> None:
    if (row := machine.nodes.edit(node)) is not None:
        row.phase = phase


def _backward_began(machine: Machine, wire: Wire) -> None:
    _, number, roots, keep_graph = wire
    if machine.backward is not None and machine.backward.running:
        machine.outer.append(machine.backward)  # a hook that runs a backward pass of its own
    else:
        for node in [node.id for node in machine.nodes if node.phase]:
            _set_phase(machine, node, "")
    machine.begin_backward(BackwardState(number, roots, True, keep_graph, [], []))


def _dependencies_counted(machine: Machine, wire: Wire) -> None:
    _, _number, nodes, counts = wire
    for node, count in zip(nodes, counts, strict=False):
        if (row := machine.nodes.edit(node)) is not None:
            row.phase, row.waiting = "waiting", count
    if (backward := machine.edit_backward()) is not None:
        backward.nodes_total = len(nodes)


def _node_ready(machine: Machine, wire: Wire) -> None:
    _set_phase(machine, wire[1], "ready")
    if (backward := machine.edit_backward()) is not None:
        backward.ready.append(wire[1])


def _node_began(machine: Machine, wire: Wire) -> None:
    node = wire[1]
    _set_phase(machine, node, "running")
    if (backward := machine.edit_backward()) is not None:
        backward.current = node
        if node in backward.ready:
            backward.ready.remove(node)


def _gradient_sent(machine: Machine, wire: Wire) -> None:
    _, node, receiver, input_nr, gradient, _summed, waiting = wire
    if (row := machine.nodes.edit(receiver)) is not None:
        row.waiting = waiting
    if (backward := machine.edit_backward()) is not None:
        backward.sent.append(SentGradient(node, receiver, input_nr, gradient, machine.step))


def _grad_set(machine: Machine, wire: Wire) -> None:
    if (row := machine.tensors.edit(wire[1])) is not None:
        row.grad = wire[2]


def _node_ended(machine: Machine, wire: Wire) -> None:
    _set_phase(machine, wire[1], "done")
    if (backward := machine.edit_backward()) is not None:
        backward.current, backward.nodes_done = 0, backward.nodes_done + 1


def _backward_ended(machine: Machine, wire: Wire) -> None:
    if (backward := machine.edit_backward()) is not None:
        if backward.current:
            _set_phase(machine, backward.current, "failed")
        backward.running, backward.failed, backward.current = False, backward.current, 0
    machine.resume_backward()


FOLDS: dict[type[Event], Callable[[Machine, Wire], None]] = {
    NodeMade: _node_made,
    NodeEdgesSet: _node_edges_set,
    GradFnSet: _grad_fn_set,
    TensorSaved: _tensor_saved,
    SavedFreed: _saved_freed,
    NodeFreed: _node_freed,
    BackwardBegan: _backward_began,
    DependenciesCounted: _dependencies_counted,
    NodeReady: _node_ready,
    NodeBegan: _node_began,
    GradientSent: _gradient_sent,
    GradAccumulated: _grad_set,
    GradSet: _grad_set,
    NodeEnded: _node_ended,
    BackwardEnded: _backward_ended,
}
