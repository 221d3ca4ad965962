"""A compiled function: the graphs that were made of it, and when each may be used again."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._dynamo import exc
from stridescope.engine.torch._dynamo.recorder import Recorder
from stridescope.engine.torch._dynamo.sources import named_tensors
from stridescope.engine.torch._dynamo.symbols import SymInt, symbol_of
from stridescope.engine.torch.fx.graph_module import GraphModule
from stridescope.engine.torch.nn.modules.module import Module
from stridescope.engine.torch.nn.parameter import Parameter

Backend = Callable[..., Any]
counters: defaultdict[str, Counter[str]] = defaultdict(Counter)
_CALLS = ("call_function", "call_method", "call_module")


@dataclass
class Settings:
    """How a function is compiled."""

    backend: Backend
    fullgraph: bool = False
    dynamic: bool | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass
class _Graph:
    """One compiled graph and the inputs that it fits."""

    text: str
    guards: list[tuple[Any, ...]]
    dynamic: set[tuple[int, int]]  # (input, dimension) of any size from 2 on
    symbols: list[tuple[int, int]]  # the dimensions whose sizes are given before the tensors
    call: Callable[..., Any]


def _guard(tensor: Tensor) -> tuple[Any, ...]:
    """What a graph takes for granted of an input, beside its sizes."""
    return type(tensor), tensor.dtype, tensor.requires_grad, tensor.device, tensor.dim()


def _fits(graph: _Graph, sizes: list[tuple[int, ...]], guards: list[tuple[Any, ...]]) -> bool:
    """Whether inputs of these sizes may go through the graph."""
    if [guard[:-1] for guard in graph.guards] != guards:
        return False
    for place, (had, has) in enumerate(zip((guard[-1] for guard in graph.guards), sizes, strict=True)):
        for dim, (a, b) in enumerate(zip(had, has, strict=True)):
            if a != b and ((place, dim) not in graph.dynamic or b < 2):
                return False
    return True


class Compiled:
    """The graphs of one function.

    Attributes:
        seen: each graph that was made, as the backend got it.
        breaks: why graphs ended, at the last call.
    """

    every: list[Compiled] = []

    def __init__(self, function: Callable[..., Any], settings: Settings) -> None:
        self.function, self.settings = function, settings
        self.graphs: list[_Graph] = []
        self.seen: list[GraphModule] = []
        self.breaks: list[str] = []
        Compiled.every.append(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function, its tensor work through the compiled graphs."""
        if Recorder.current is not None:  # called inside of another compiled function: part of its graphs
            return self.function(*args, **kwargs)
        recorder = Recorder(named_tensors(self.function, args, kwargs), self._run, self.settings.fullgraph)
        counters["frames"]["total"] += 1
        try:
            with recorder.recording():
                result = recorder.finished(self.function(*args, **kwargs))
        finally:
            self.breaks = recorder.breaks
            for reason in recorder.breaks:
                counters["graph_break"][reason] += 1
        counters["frames"]["ok"] += 1
        return result

    def _run(self, recorder: Recorder, inputs: list[Tensor]) -> Sequence[Tensor]:
        text = f"{recorder.graph}\ngrad: {recorder.grad_at_start}"
        guards, sizes = [_guard(t) for t in inputs], [tuple(t.shape) for t in inputs]
        graph = next((g for g in self.graphs if g.text == text and _fits(g, sizes, guards)), None)
        if graph is None:
            graph = self._compile(recorder, text, guards, sizes)
            self.graphs.append(graph)
        given = [inputs[place].shape[dim] for place, dim in graph.symbols]
        before = grad_mode.enabled
        grad_mode.enabled = recorder.grad_at_start
        try:
            results = graph.call(*given, *inputs)
        finally:
            grad_mode.enabled = before
        return results if isinstance(results, (tuple, list)) else (results,)

    def _compile(self, recorder: Recorder, text: str, guards: Any, sizes: list[tuple[int, ...]]) -> _Graph:
        dynamic = self._dynamic(recorder.inputs, text, guards, sizes)
        example: list[Any] = list(recorder.shadows)
        symbols = _add_symbols(recorder, dynamic, sizes)
        example[:0] = [sizes[place][dim] for place, dim in symbols]
        module = GraphModule(Module(), recorder.graph)
        self.seen.append(module)
        counters["stats"]["unique_graphs"] += 1
        counters["stats"]["calls_captured"] += sum(n.op in _CALLS for n in recorder.graph.nodes)
        try:
            call = self.settings.backend(module, example, **self.settings.extra)
        except Exception as error:
            raise exc.BackendCompilerFailed(self.settings.backend, error) from error
        if not callable(call):
            raise TypeError("compiler_fn did not return callable")
        whole = [(*guard, size) for guard, size in zip(guards, sizes, strict=True)]
        return _Graph(text, whole, dynamic, symbols, call)

    def _dynamic(
        self, inputs: list[Tensor], text: str, guards: Any, sizes: list[tuple[int, ...]]
    ) -> set[tuple[int, int]]:
        """The dimensions that are to fit any size: those asked for, and those that were another size before."""
        marked = {(i, d) for i, t in enumerate(inputs) for d in t.__dict__.get("_dynamo_dynamic_indices", ())}
        if self.settings.dynamic is False:
            return marked
        changeable = [(i, d) for i, t in enumerate(inputs) if not isinstance(t, Parameter) for d in range(t.dim())]
        if self.settings.dynamic:
            return marked | {(i, d) for i, d in changeable if sizes[i][d] >= 2}
        for graph in self.graphs:
            if graph.text == text and [guard[:-1] for guard in graph.guards] == guards:
                had = [guard[-1] for guard in graph.guards]
                marked |= graph.dynamic | {(i, d) for i, d in changeable if had[i][d] != sizes[i][d]}
        return {(i, d) for i, d in marked if sizes[i][d] >= 2}


def _add_symbols(
    recorder: Recorder, dynamic: set[tuple[int, int]], sizes: list[tuple[int, ...]]
) -> list[tuple[int, int]]:
    """Put a placeholder for each size that may change before the others; equal sizes share one."""
    chosen: dict[int, tuple[int, int]] = {}
    taken: set[int] = set()
    for place, dim in sorted(dynamic):
        if sizes[place][dim] in chosen:
            continue
        chosen[sizes[place][dim]] = (place, dim)
        source = [n.target for n in recorder.graph.nodes if n.op == "placeholder"][place + len(taken)]
        name = symbol_of(source, dim, taken)
        first = next(n for n in recorder.graph.nodes if not isinstance(n.type, type) or n.type is not SymInt)
        with recorder.graph.inserting_before(first):
            recorder.graph.create_node("placeholder", name, name=name, type_expr=SymInt)
    return list(chosen.values())


def forget() -> None:
    """Let go of every compiled graph (``torch._dynamo.reset``)."""
    for compiled in Compiled.every:
        compiled.graphs.clear()
        compiled.seen.clear()
    counters.clear()


def never_broken(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, run as it is written; what would end a graph raises Unsupported."""
    from stridescope.engine.torch._dynamo.strict import one_graph

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with one_graph():
            return function(*args, **kwargs)

    return call
