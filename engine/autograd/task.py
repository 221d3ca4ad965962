"""One backward pass: dependency counts, the ready queue, input buffers, and one node after another.

It follows PyTorch's engine step by step: the graph below the roots is counted, then the ready node with the highest
sequence number runs, its gradients are checked against the receivers' outputs and summed into their buffers.
Everything it decides is an event, so a worker's gate can stop between two nodes.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence

from stridescope.engine.announce import tensor_id
from stridescope.engine.autograd.accumulate import accumulate, summed
from stridescope.engine.autograd.anomaly import check_nan, describe
from stridescope.engine.autograd.function import BackwardCFunction
from stridescope.engine.autograd.hooks import run_post_hooks, run_pre_hooks, run_tensor_hooks
from stridescope.engine.autograd.modes import anomaly
from stridescope.engine.autograd.node import AccumulateGrad, Edge, Gradients, Node, node_id
from stridescope.engine.autograd.ready import ReadyQueue
from stridescope.engine.autograd.validate import fitted, validated
from stridescope.engine.autograd.watched import watched
from stridescope.engine.events import (
    DependenciesCounted,
    GradientSent,
    NodeBegan,
    NodeEnded,
    NodeReady,
    journal,
)
from stridescope.engine.events.bundles import PASSED_ON
from stridescope.engine.tensor import Tensor

_passes = itertools.count(1)


class _Running(threading.local):
    task: Task | None = None
    node: Node | None = None
    depth: int = 0  # passes on this thread's stack, one inside another


running = _Running()
# The references that an input buffer's slot and the engine's own frames hold while a gradient is added to it.
_BUFFERED = 1


class Task:
    """One call of backward: its graph, its buffers and its queue.

    Attributes:
        needed: the nodes that lead to wanted inputs; None when everything runs.
        captures: which output gradients of which nodes the caller asked for.
        captured: what arrived for them.
        roots: where the pass starts.
    """

    def __init__(self, keep_graph: bool) -> None:
        self.number = next(_passes)
        self.keep_graph = keep_graph
        self.roots: set[Node] = set()
        self.needed: set[Node] | None = None
        self.captures: dict[Node, set[int]] = {}
        self.captured: dict[Edge, Tensor] = {}
        self.waiting: dict[Node, int] = {}
        self.buffers: dict[Node, list[Tensor | None]] = {}
        self.queue = ReadyQueue()
        self.callbacks: list[Callable[[], None]] = []

    # ---- before the walk -----------------------------------------------------------------------------------------

    def count(self, roots: Sequence[Node]) -> None:
        """Count how many gradients each reachable node waits for."""
        self.roots = starts = set(roots)
        waiting, stack = self.waiting, list(starts)
        while stack:
            for child, _ in stack.pop()._edges:
                if child is None:
                    continue
                if child in waiting:
                    waiting[child] += 1
                else:
                    waiting[child] = 1
                    if child not in starts:
                        stack.append(child)
        if (emit := journal.emit) is not None:
            seen = list(dict.fromkeys([*roots, *waiting]))
            counts = tuple([waiting.get(n, 0) for n in seen])
            emit((DependenciesCounted.code, self.number, tuple([n._id or node_id(n) for n in seen]), counts))

    def restrict(self, roots: Sequence[Node], targets: set[Node], run_targets: bool) -> None:
        """Run only what leads to ``targets``; those themselves run only when ``run_targets``."""
        leads = set(targets)
        self.needed = needed = set(targets) if run_targets else set()
        for node in children_first(roots):
            if any(child in leads for child, _ in node._edges):
                leads.add(node)
                needed.add(node)

    def wants(self, node: Node) -> bool:
        """Whether the pass has anything to do at this node."""
        return self.needed is None or node in self.needed or node in self.captures

    # ---- the walk ------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run ready nodes, youngest first, until none is left."""
        queue = self.queue
        heap = queue.heap
        outer, node = running.node, None
        try:
            while heap:
                node = queue.pop() if len(heap) > 1 else heap.pop()
                if watched.by is not None:
                    running.node = node
                    with watched.by.evaluating(node):
                        self.step(node)
                elif journal.emit is not None or self.needed is not None or anomaly.enabled:
                    running.node = node
                    if node._hooks is None and self._is_told_whole() and node.__class__ is not AccumulateGrad:
                        self._told_step(node)
                    else:
                        self.step(node)
                elif node.__class__ is AccumulateGrad:
                    self._run_leaf(node, self.buffers.pop(node, [None]))
                elif node._hooks is not None:
                    self.step(node)
                else:
                    self._quick_step(node)
        except Exception:
            if anomaly.enabled and node is not None:
                describe(node)
            raise
        finally:
            running.node = outer

    def run_alone(self) -> None:
        """Run on a thread where no pass runs yet."""
        running.task, running.depth = self, 1
        self.run()

    def _quick_step(self, node: Node) -> None:
        """What :meth:`step` does, for a node without hooks in a pass that runs everything and that nobody records."""
        buffers, waiting = self.buffers, self.waiting
        buffer = buffers.pop(node, None)
        results = node._run((None,) * len(node._outputs) if buffer is None else tuple(buffer))
        if not self.keep_graph:
            node._release()
        edges = node._edges
        if len(results) != len(edges):
            validated(node, edges, results)
        queue = self.queue
        for position, (receiver, number) in enumerate(edges):
            if receiver is None:
                continue
            gradient, outputs = results[position], receiver._outputs
            buffer = buffers.get(receiver)
            if buffer is None:
                buffer = buffers[receiver] = [None] * len(outputs)
            if gradient is not None:
                if (meta := outputs[number]) is not None:
                    sizes, kind, on = meta
                    if gradient._array.shape != sizes or gradient.dtype is not kind or gradient._device is not on:
                        gradient = fitted(node, gradient, meta, position)
                old = buffer[number]
                if old is None:
                    buffer[number] = gradient
                else:
                    again = sum(result is old for result in results)  # this node's tuple holds it, too
                    buffer[number] = summed(old, gradient, _BUFFERED + 1 + again)
            waiting[receiver] = left = waiting[receiver] - 1
            if not left:
                queue.push(receiver)

    def _is_told_whole(self) -> bool:
        """Whether the pass runs everything and something records that takes bundles."""
        return journal.whole is not None and self.needed is None and not anomaly.enabled

    def _told_step(self, node: Node) -> None:
        """What :meth:`step` does, for a node without hooks where :meth:`_is_told_whole`: the same events in fewer rows.

        Someone may ask for single events while the node's formula runs.
        """
        given = tuple(self.buffers.pop(node, ()) or [None] * len(node._outputs))
        number = node._id or node_id(node)
        journal.bundle((NodeBegan.code, number, tuple([0 if g is None else g._id or tensor_id(g) for g in given])))
        results = validated(node, node._edges, node._run(given))
        del given
        if not self.keep_graph:
            node._release()
        left = list(results)[::-1]
        del results
        if self._passes_on(number, node._edges, left):
            self._send(node, node._edges[1:], left)
            return
        if (emit := journal.emit) is not None:
            emit((NodeEnded.code, number))
        self._send(node, node._edges, left)

    def _passes_on(self, number: int, edges: Sequence[Edge], left: list[Tensor | None]) -> bool:
        """Deliver the first gradient where its receiver is ready with it, and tell with it that the node is done.

        Returns whether it was so.
        """
        receiver, place = edges[0] if edges else (None, 0)
        if receiver is None or left[-1] is None or (whole := journal.whole) is None:
            return False
        gradient = left[-1]._id
        if not gradient or not receiver._id or self.waiting[receiver] > 1 or receiver in self.buffers:
            return False
        self.waiting[receiver] = 0
        slots: list[Tensor | None] = [None] * len(receiver._outputs)
        slots[place], self.buffers[receiver] = left.pop(), slots
        whole((PASSED_ON, number, receiver._id, place, gradient))
        self.queue.push(receiver)
        return True

    def ready(self, node: Node) -> None:
        """Put a node whose gradients are all there into the queue."""
        self.queue.push(node)
        if (emit := journal.emit) is not None:
            emit((NodeReady.code, node._id or node_id(node)))

    def step(self, node: Node) -> None:
        """Run one node and send its gradients on."""
        gradients = self.buffers.pop(node, None) or [None] * len(node._outputs)
        runs = self.needed is None or node in self.needed
        if not runs:
            run_tensor_hooks(node, gradients)
        if node in self.captures:
            self._capture(node, gradients)
        if not runs:
            return
        if (emit := journal.emit) is not None:
            given = tuple([0 if g is None else g._id or tensor_id(g) for g in gradients])
            emit((NodeBegan.code, node._id or node_id(node), given))
        if node.__class__ is AccumulateGrad:
            self._run_leaf(node, gradients)
            results: Gradients = ()
        else:
            results = self._run(node, gradients)
            if not self.keep_graph:
                node._release()
            if anomaly.enabled and anomaly.check_nan:
                check_nan(node, results)
        if emit is not None:
            emit((NodeEnded.code, node._id or node_id(node)))
        left = list(results)[::-1]
        del results
        self._send(node, node._edges, left)

    def _capture(self, node: Node, gradients: list[Tensor | None]) -> None:
        for number in self.captures[node]:
            gradient = gradients[number]
            if gradient is not None:
                self.captured[node, number] = gradient

    def _run_leaf(self, node: AccumulateGrad, gradients: list[Tensor | None]) -> None:
        leaf, hooks = node.variable, node._hooks
        if leaf._hooks:
            run_tensor_hooks(node, gradients)
        if hooks is None:
            _accumulated(node, gradients)
            return
        if hooks.pre:
            gradients = list(run_pre_hooks(node, tuple(gradients)))
        given = tuple(gradients) if hooks.post else ()
        _accumulated(node, gradients, others=1 if hooks.post else 0)
        if hooks.post:
            run_post_hooks(node, (), given)

    def _run(self, node: Node, gradients: list[Tensor | None]) -> Gradients:
        """Hooks, the node's formula, the check of its results, hooks."""
        hooks = node._hooks
        if hooks is not None:
            run_tensor_hooks(node, gradients)
        given = tuple(gradients)
        gradients.clear()
        if hooks is not None and hooks.pre:
            given = run_pre_hooks(node, given)
        results = validated(node, node._edges, self._wanted(node, _applied(node, given)))
        if hooks is None or not hooks.post:
            return results
        return run_post_hooks(node, results, given)

    def _wanted(self, node: Node, results: Gradients) -> Gradients:
        """Without what leads nowhere in this pass; functions that users wrote give all they give."""
        if self.needed is None or isinstance(node, BackwardCFunction):
            return results
        pairs = zip(node._edges, results, strict=False)
        return tuple(g if n is None or self.wants(n) else None for (n, _), g in pairs)

    def _send(self, node: Node, edges: Sequence[Edge], left: list[Tensor | None]) -> None:
        """Deliver the gradients; they are taken from the end of ``left``, so that only their receivers hold them."""
        for receiver, number in edges:
            if receiver is None:
                left.pop()
            else:
                self._deliver(node, receiver, number, left)

    def _deliver(self, node: Node, receiver: Node, number: int, results: list[Tensor | None]) -> None:
        gradient = results.pop()
        left = self.waiting[receiver] - 1
        self.waiting[receiver] = left
        if self.needed is not None and not self.wants(receiver):
            return
        added = self.put(receiver, number, gradient)
        if (emit := journal.emit) is not None and gradient is not None:
            emit((GradientSent.code, node_id(node), node_id(receiver), number, tensor_id(gradient), added, left))
        if not left:
            self.ready(receiver)

    def put(self, node: Node, number: int, gradient: Tensor | None) -> bool:
        """Add a gradient to a node's input buffer; True when it was summed with one that was there."""
        buffer = self.buffers.get(node)
        if buffer is None:
            buffer = self.buffers[node] = [None] * len(node._outputs)
        if gradient is None:
            return False
        old = buffer[number]
        buffer[number] = gradient if old is None else summed(old, gradient, _BUFFERED + 1)
        return old is not None


def _accumulated(node: AccumulateGrad, gradients: list[Tensor | None], others: int = 0) -> None:
    """Add a gradient to its leaf's ``.grad``."""
    if watched.by is None:
        accumulate(node.variable, gradients, others)
    else:
        with watched.by.applying(node, _sizes(gradients)):
            accumulate(node.variable, gradients, others)


def _applied(node: Node, given: tuple[Tensor | None, ...]) -> Gradients:
    """What a node's formula makes of its gradients."""
    if watched.by is None:
        return node._run(given)
    with watched.by.applying(node, _sizes(given)):
        return node._run(given)


def _sizes(gradients: Sequence[Tensor | None]) -> list[list[int]]:
    return [[] if gradient is None else list(gradient._array.shape) for gradient in gradients]


def children_first(roots: Sequence[Node]) -> list[Node]:
    """Every reachable node after all of its children, without recursion."""
    done: list[Node] = []
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(root, False) for root in roots]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            done.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((child, False) for child, _ in node._edges if child is not None and child not in seen)
    return done
