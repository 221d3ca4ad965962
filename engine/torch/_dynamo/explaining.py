"""``torch._dynamo.explain``: which graphs a function is made into, and why they end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stridescope.engine.torch._dynamo.compiled import Compiled, Settings
from stridescope.engine.torch.fx.graph_module import GraphModule
from stridescope.engine.torch.fx.qualified import plain_name


@dataclass
class BreakReason:
    """Why a graph ended."""

    reason: str

    def __str__(self) -> str:
        return f"Reason: {self.reason}"


@dataclass
class ExplainOutput:
    """What ``explain`` gives: the graphs, how many they are, how many calls they hold, and why they end."""

    graphs: list[GraphModule]
    graph_count: int
    graph_break_count: int
    break_reasons: list[BreakReason]
    op_count: int
    ops_per_graph: list[list[Any]]

    def __str__(self) -> str:
        lines = [f"Graph Count: {self.graph_count}", f"Graph Break Count: {self.graph_break_count}",
                 f"Op Count: {self.op_count}", "Break Reasons:"]  # fmt: skip
        for number, reason in enumerate(self.break_reasons, 1):
            lines += [f"  Break Reason {number}:", f"    {reason}"]
        lines.append("Ops per Graph:")
        for number, ops in enumerate(self.ops_per_graph, 1):
            lines += [f"  Ops {number}:", *(f"    {op if isinstance(op, str) else _shown(op)}" for op in ops)]
        return "\n".join(lines) + "\n"


def _shown(op: Any) -> str:
    return repr(op) if getattr(op, "__module__", "") in ("_operator", "builtins") else f"{plain_name(op)}"


def explain(f: Callable[..., Any], *extra_args: Any, **extra_kwargs: Any) -> Any:
    """A function that runs ``f`` with arguments and tells which graphs it is made into."""

    def inner(*args: Any, **kwargs: Any) -> ExplainOutput:
        compiled = Compiled(f, Settings(lambda module, inputs: module.forward))
        compiled(*args, **kwargs)
        graphs = compiled.seen
        ops = [[n.target for n in g.graph.nodes if n.op == "call_function"] for g in graphs]
        count = sum(n.op in ("call_function", "call_method") for g in graphs for n in g.graph.nodes)
        reasons = [BreakReason(reason) for reason in compiled.breaks]
        return ExplainOutput(list(graphs), len(graphs), max(len(graphs) - 1, 0), reasons, count, ops)

    return inner(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else inner
