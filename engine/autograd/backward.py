"""The door of the backward engine: from roots and gradients to a finished pass."""

from __future__ import annotations

from collections.abc import Sequence

from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.autograd.node import Edge, Node, node_id
from stridescope.engine.autograd.relay import DEEPEST, Relay
from stridescope.engine.autograd.task import Task, running
from stridescope.engine.autograd.validate import validated
from stridescope.engine.events import BackwardBegan, BackwardEnded, journal
from stridescope.engine.tensor import Tensor


def execute(
    roots: Sequence[Edge],
    gradients: Sequence[Tensor | None],
    *,
    keep_graph: bool,
    create_graph: bool,
    inputs: Sequence[Edge] | None = None,
    accumulate_into_inputs: bool = False,
) -> list[Tensor | None]:
    """Walk the graph from ``roots`` with these gradients.

    Without ``inputs`` every leaf below gets its gradient in ``.grad``. With ``inputs`` only the paths to them run;
    their gradients are returned in order (None where none arrived), or accumulated when ``accumulate_into_inputs``.
    """
    task = Task(keep_graph)
    nodes = [node for node, _ in roots if node is not None]
    if (emit := journal.emit) is not None:
        emit((BackwardBegan.code, task.number, tuple(node_id(n) for n in nodes), keep_graph))
    task.count(nodes)
    if inputs is not None:
        _restrict(task, nodes, inputs, accumulate_into_inputs)
    outer, enabled = running.task, grad_mode.enabled
    running.task, grad_mode.enabled = task, create_graph
    running.depth += 1
    try:
        _start(task, roots, gradients)
        if running.depth > DEEPEST:
            Relay(task.run_alone).wait()
        else:
            task.run()
        _finish(task)
    finally:  # a pass that fails is over as well: nothing that follows belongs to it
        running.depth -= 1
        running.task, grad_mode.enabled = outer, enabled
        if emit is not None:
            emit((BackwardEnded.code, task.number))
    return [task.captured.get(edge) for edge in inputs or ()]


def _restrict(task: Task, roots: Sequence[Node], inputs: Sequence[Edge], accumulating: bool) -> None:
    targets = {node for node, _ in inputs if node is not None}
    task.restrict(roots, targets, run_targets=accumulating)
    if not accumulating:
        for node, number in inputs:
            if node is not None:
                task.captures.setdefault(node, set()).add(number)


def _start(task: Task, roots: Sequence[Edge], gradients: Sequence[Tensor | None]) -> None:
    """Put the first gradients into the roots' buffers; a root that is not below another is ready."""
    for (node, number), gradient in zip(roots, validated(None, tuple(roots), tuple(gradients)), strict=True):
        if node is not None:
            task.put(node, number, gradient)
    for node in dict.fromkeys(node for node, _ in roots):
        if node is not None and not task.waiting.get(node) and task.wants(node):
            task.ready(node)


def _finish(task: Task) -> None:
    """Run the callbacks queued during the pass; a pass inside another runs its own at its own end."""
    while task.callbacks:
        task.callbacks.pop(0)()
