"""The backward engine: dependency counts, a ready queue, input buffers, and one node after another.

It follows PyTorch's ``torch/csrc/autograd/engine.cpp``: the graph below the roots is counted, then the ready node
with the highest sequence number runs, its gradients are checked against the receivers' outputs and summed into
their buffers. Everything it decides is an event, so a worker's gate can stop between two nodes.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from stridescope.engine.autograd.modes import anomaly, grad_mode
from stridescope.engine.autograd.node import AccumulateGrad, Edge, Gradients, Node, OutputMeta
from stridescope.engine.events import (
    BackwardBegan,
    BackwardEnded,
    DependenciesCounted,
    GradAccumulated,
    GradientSent,
    GradSet,
    HookRan,
    NodeBegan,
    NodeEnded,
    NodeReady,
    journal,
)
from stridescope.engine.tensor import Tensor, alias, tensor_id

_passes = itertools.count(1)


class _Running(threading.local):
    depth: int = 0
    task: Task | None = None


running = _Running()


class Task:
    """One call of backward: its graph, its buffers and its queue."""

    def __init__(self, keep_graph: bool, create_graph: bool, captures: dict[Node, list[int]] | None) -> None:
        self.number = next(_passes)
        self.keep_graph, self.create_graph = keep_graph, create_graph
        self.captures = captures
        self.captured: dict[tuple[Node, int], Tensor] = {}
        self.waiting: dict[Node, int] = {}
        self.needed: set[Node] | None = None
        self.buffers: dict[Node, list[Tensor | None]] = {}
        self.queue: list[tuple[int, int, Node]] = []
        self.order = itertools.count()
        self.callbacks: list[Callable[[], None]] = []

    # ---- before the walk -----------------------------------------------------------------------------------------

    def count(self, roots: Sequence[Node]) -> None:
        """Count how many gradients each reachable node waits for."""
        waiting, stack, seen = self.waiting, list(dict.fromkeys(roots)), set(roots)
        while stack:
            for child, _ in stack.pop().edges:
                if child is not None:
                    waiting[child] = waiting.get(child, 0) + 1
                    if child not in seen:
                        seen.add(child)
                        stack.append(child)
        if (emit := journal.emit) is not None:
            emit((DependenciesCounted.code, self.number, tuple(n.id for n in seen),
                  tuple(waiting.get(n, 0) for n in seen)))  # fmt: skip
        if self.captures is not None:
            self._restrict(roots)

    def _restrict(self, roots: Sequence[Node]) -> None:
        """Find the nodes from which a captured input can be reached; only they run."""
        captures = self.captures or {}
        needed = set(captures)
        for node in _children_first(roots):
            if any(child in needed for child, _ in node.edges):
                needed.add(node)
        self.needed = needed

    # ---- the walk ------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run ready nodes, youngest first, until none is left."""
        while self.queue:
            _, _, node = heapq.heappop(self.queue)
            self.step(node)
        for callback in self.callbacks:
            callback()

    def ready(self, node: Node) -> None:
        """Put a node whose gradients are all there into the queue."""
        heapq.heappush(self.queue, (-node.sequence_nr, next(self.order), node))
        if (emit := journal.emit) is not None:
            emit((NodeReady.code, node.id))

    def step(self, node: Node) -> None:
        """Run one node and send its gradients on."""
        buffer = self.buffers.pop(node, None) or [None] * len(node.outputs)
        gradients = self._before(node, tuple(buffer))
        if not self._executes(node):
            return
        emit = journal.emit
        if emit is not None:
            emit((NodeBegan.code, node.id, tuple(0 if g is None else tensor_id(g) for g in gradients)))
        results = self.call(node, gradients)
        if emit is not None:
            emit((NodeEnded.code, node.id))
        self._send(node, results)

    def _executes(self, node: Node) -> bool:
        if self.captures is None:
            return True
        return any(child in self.needed for child, _ in node.edges)  # type: ignore[operator]

    def _before(self, node: Node, gradients: Gradients) -> Gradients:
        """Tensor hooks, retained gradients, captures, then the node's own pre-hooks."""
        if node.hooks is not None:
            gradients = run_tensor_hooks(node, gradients)
        if self.captures is not None and node in self.captures:
            for number in self.captures[node]:
                gradient = gradients[number]
                if gradient is not None:
                    self.captured[node, number] = gradient
        if node.hooks is not None and node.hooks.pre and self._executes(node):
            gradients = run_pre_hooks(node, gradients)
        return gradients

    def call(self, node: Node, gradients: Gradients) -> Gradients:
        """The node's formula, its post-hooks, and the freeing of what it saved."""
        if isinstance(node, AccumulateGrad):
            if gradients[0] is not None:
                accumulate(node.variable, gradients[0], self.create_graph)
            results: Gradients = ()
        else:
            results = node.apply(gradients)
        if not self.keep_graph:
            node.release()
        if node.hooks is not None and node.hooks.post:
            results = run_post_hooks(node, results, gradients)
        if anomaly.enabled and anomaly.check_nan:
            check_nan(node, results)
        return results

    def _send(self, node: Node, results: Gradients) -> None:
        edges = node.edges
        if len(results) > len(edges) and any(extra is not None for extra in results[len(edges) :]):
            raise RuntimeError(f"Function {node.name()} returned an invalid number of gradients - expected "
                               f"{len(edges)}, but got {len(results)}")  # fmt: skip
        for (receiver, number), gradient in zip(edges, results, strict=False):
            if receiver is not None:
                self._deliver(node, receiver, number, gradient)

    def _deliver(self, node: Node, receiver: Node, number: int, gradient: Tensor | None) -> None:
        if gradient is not None:
            gradient = validated(node, receiver.outputs[number], gradient, number)
        self.waiting[receiver] -= 1
        wanted = self.needed is None or receiver in self.needed
        summed = wanted and self.put(receiver, number, gradient)
        if (emit := journal.emit) is not None and gradient is not None:
            emit((GradientSent.code, node.id, receiver.id, number, tensor_id(gradient), summed, self.waiting[receiver]))
        if self.waiting[receiver] == 0 and wanted:
            self.ready(receiver)

    def put(self, node: Node, number: int, gradient: Tensor | None) -> bool:
        """Add a gradient to a node's input buffer; True when it was summed with one that was there."""
        buffer = self.buffers.get(node)
        if buffer is None:
            buffer = self.buffers[node] = [None] * len(node.outputs)
        if gradient is None:
            return False
        old = buffer[number]
        buffer[number] = gradient if old is None else old + gradient
        return old is not None


def _children_first(roots: Sequence[Node]) -> list[Node]:
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
            stack.extend((child, False) for child, _ in node.edges if child is not None and child not in seen)
    return done


def validated(node: Node, meta: OutputMeta, gradient: Tensor, position: int) -> Tensor:
    """Bring a gradient to its receiver's shape, dtype and device, or refuse it as PyTorch does."""
    if gradient._array.shape != meta.sizes:
        gradient = _reduced(node, meta, gradient, position)
    if gradient.dtype is not meta.dtype:
        if meta.dtype.is_floating_point and gradient.dtype.is_complex:
            gradient = gradient.real
        gradient = gradient.to(meta.dtype)
    if gradient.device is not meta.device:
        if gradient._array.ndim:
            raise RuntimeError(f"Function {node.name()} returned an invalid gradient at index {position} - expected "
                               f"device {meta.device} but got {gradient.device}")  # fmt: skip
        gradient = gradient.to(meta.device)
    return gradient


def _reduced(node: Node, meta: OutputMeta, gradient: Tensor, position: int) -> Tensor:
    sizes = gradient._array.shape
    extra = len(sizes) - len(meta.sizes)
    if extra < 0 or any(n not in (1, m) for n, m in zip(meta.sizes, sizes[extra:], strict=True)):
        raise RuntimeError(f"Function {node.name()} returned an invalid gradient at index {position} - got "
                           f"{list(sizes)} but expected shape compatible with {list(meta.sizes)}")  # fmt: skip
    result: Tensor = gradient.sum_to_size(meta.sizes)
    return result


def accumulate(leaf: Tensor, gradient: Tensor, create_graph: bool) -> None:
    """Add a gradient to ``leaf.grad`` (``AccumulateGrad``).

    The first gradient is taken over as it is when nobody else can hold it and its layout follows the leaf's, else
    cloned; later ones are added in place, or out of place under create_graph.
    """
    old = leaf._grad
    if old is None:
        leaf._grad = gradient if create_graph else _first(leaf, gradient)
    elif create_graph:
        leaf._grad = old + gradient
    else:
        with_mode(False, lambda: old.add_(gradient))
    if (emit := journal.emit) is not None:
        emit((GradAccumulated.code, tensor_id(leaf), tensor_id(leaf._grad), old is None))  # type: ignore[arg-type]
    for hook in list((leaf._post_hooks or {}).values()):
        hook(leaf)


def _first(leaf: Tensor, gradient: Tensor) -> Tensor:
    detached = alias(gradient)
    kept: Tensor = with_mode(False, lambda: detached.clone())
    if _same_layout(leaf, kept):
        return kept
    relaid: Tensor = with_mode(False, lambda: leaf.detach().clone().copy_(detached))
    return relaid if _dense(leaf) else kept.contiguous()


def _dense(leaf: Tensor) -> bool:
    from stridescope.engine.layout import is_non_overlapping_and_dense

    return is_non_overlapping_and_dense(leaf._array.shape, leaf.strides)


def _same_layout(leaf: Tensor, gradient: Tensor) -> bool:
    sizes = leaf._array.shape
    pairs = zip(sizes, leaf.strides, gradient.strides, strict=True)
    return all(n < 2 or a == b for n, a, b in pairs)


def with_mode(enabled: bool, function: Callable[[], Any]) -> Any:
    """Call ``function`` with grad mode set, and set it back."""
    before, grad_mode.enabled = grad_mode.enabled, enabled
    try:
        return function()
    finally:
        grad_mode.enabled = before


# ---- hooks -------------------------------------------------------------------------------------------------------


def run_tensor_hooks(node: Node, gradients: Gradients) -> Gradients:
    """``Tensor.register_hook`` hooks of each output, then the gradients that ``retain_grad`` keeps."""
    changed = list(gradients)
    hooks = node.hooks
    assert hooks is not None
    for number, registered in list(hooks.tensor.items()):
        for hook in list(registered.values()):
            changed[number] = _replaced(hook(changed[number]), changed[number], node)
    for number, reference in hooks.retain.items():
        tensor, gradient = reference(), changed[number]
        if tensor is not None and gradient is not None:
            retain(tensor, gradient)
    return tuple(changed)


def retain(tensor: Tensor, gradient: Tensor) -> None:
    """Keep a non-leaf's gradient in its ``.grad``, adding to what is there."""
    old = tensor._grad
    if old is None:
        tensor._grad = with_mode(grad_mode.enabled, lambda: gradient if grad_mode.enabled else alias(gradient).clone())
    else:
        tensor._grad = old + gradient
    if (emit := journal.emit) is not None:
        emit((GradSet.code, tensor_id(tensor), tensor_id(tensor._grad)))  # type: ignore[arg-type]


def _replaced(result: Any, gradient: Tensor | None, node: Node) -> Tensor | None:
    if (emit := journal.emit) is not None:
        emit((HookRan.code, "tensor hook", node.id, 0 if gradient is None else tensor_id(gradient)))
    if result is None:
        return gradient
    if not isinstance(result, Tensor):
        raise TypeError(f"hooks should return None or a Tensor, but got {type(result).__name__}")
    return result


def run_pre_hooks(node: Node, gradients: Gradients) -> Gradients:
    """``Node.register_prehook`` hooks, each seeing what the one before returned."""
    for hook in list(node.hooks.pre.values()):  # type: ignore[union-attr]
        result = hook(gradients)
        if (emit := journal.emit) is not None:
            emit((HookRan.code, "pre-hook", node.id, 0))
        if result is not None:
            gradients = result if isinstance(result, tuple) else (result,)
    return gradients


def run_post_hooks(node: Node, results: Gradients, gradients: Gradients) -> Gradients:
    """``Node.register_hook`` hooks with (gradients of inputs, gradients of outputs)."""
    for hook in list(node.hooks.post.values()):  # type: ignore[union-attr]
        result = hook(results, gradients)
        if (emit := journal.emit) is not None:
            emit((HookRan.code, "post-hook", node.id, 0))
        if result is not None:
            results = result if isinstance(result, tuple) else (result,)
    return results


def check_nan(node: Node, results: Gradients) -> None:
    """Anomaly mode: refuse a gradient that holds NaN."""
    for number, gradient in enumerate(results):
        if gradient is not None and bool(gradient.detach().isnan().any()):
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {number}th output.")


# ---- the door ----------------------------------------------------------------------------------------------------


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
    captures = None if inputs is None or accumulate_into_inputs else _capture_map(inputs)
    task = Task(keep_graph, create_graph, captures)
    nodes = [node for node, _ in roots if node is not None]
    if (emit := journal.emit) is not None:
        emit((BackwardBegan.code, task.number, tuple(n.id for n in nodes), keep_graph))
    task.count(nodes)
    if accumulate_into_inputs:
        _only_into(task, nodes, inputs or ())
    outer, running.task = running.task, task
    running.depth += 1
    try:
        for (node, number), gradient in zip(roots, gradients, strict=True):
            if node is not None:
                task.put(node, number, gradient)
        for node in dict.fromkeys(nodes):
            if not task.waiting.get(node):
                task.ready(node)
        with_mode(create_graph, task.run)
    finally:
        running.depth -= 1
        running.task = outer
    if (emit := journal.emit) is not None:
        emit((BackwardEnded.code, task.number))
    return [task.captured.get(edge) for edge in inputs or ()]  # type: ignore[arg-type]


def _capture_map(inputs: Sequence[Edge]) -> dict[Node, list[int]]:
    captures: dict[Node, list[int]] = {}
    for node, number in inputs:
        if node is not None:
            captures.setdefault(node, []).append(number)
    return captures


def _only_into(task: Task, roots: Sequence[Node], inputs: Sequence[Edge]) -> None:
    """``backward(inputs=…)``: only paths to these leaves run, and they accumulate."""
    task.captures = {}
    needed = {node for node, _ in inputs if node is not None}
    targets = set(needed)
    for node in _children_first(roots):
        if any(child in needed for child, _ in node.edges):
            needed.add(node)
    task.needed = needed
    task._executes = lambda node: node in needed and (node in targets or True)  # type: ignore[method-assign]
