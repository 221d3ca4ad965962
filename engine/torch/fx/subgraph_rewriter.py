"""Finding a pattern in a graph and putting another graph in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from stridescope.engine.torch.fx._symbolic_trace import symbolic_trace
from stridescope.engine.torch.fx.graph import Graph
from stridescope.engine.torch.fx.graph_module import GraphModule, _look_up, _put
from stridescope.engine.torch.fx.node import Node


class Match(NamedTuple):
    """A place where the pattern was found.

    Attributes:
        anchor: the pattern's last node.
        nodes_map: by node of the pattern, the node that it is here.
    """

    anchor: Node
    nodes_map: dict[Node, Node]


Match.__module__ = "torch.fx.subgraph_rewriter"


def _graph_of(pattern: Any) -> Graph:
    if isinstance(pattern, GraphModule):
        return pattern.graph
    return pattern if isinstance(pattern, Graph) else symbolic_trace(pattern).graph


def _same(pattern: Any, found: Any, match: dict[Node, Any]) -> bool:
    """Whether an argument of the pattern is this one here; notes which node is which."""
    if isinstance(pattern, Node):
        return _fits(pattern, found, match)
    if isinstance(pattern, (list, tuple)):
        return (
            isinstance(found, (list, tuple))
            and len(pattern) == len(found)
            and all(_same(p, f, match) for p, f in zip(pattern, found, strict=True))
        )
    if isinstance(pattern, dict):
        return isinstance(found, dict) and list(pattern) == list(found) and all(
            _same(pattern[key], found[key], match) for key in pattern
        )  # fmt: skip
    return not isinstance(found, Node) and type(pattern) is type(found) and bool(pattern == found)


def _fits(pattern: Node, found: Any, match: dict[Node, Any]) -> bool:
    if pattern in match:
        return match[pattern] is found or (not isinstance(found, Node) and match[pattern] == found)
    if pattern.op == "placeholder":
        match[pattern] = found
        return True
    if not isinstance(found, Node) or (pattern.op, pattern.target) != (found.op, found.target):
        return False
    match[pattern] = found
    return _same(pattern.args, found.args, match) and _same(dict(pattern.kwargs), dict(found.kwargs), match)


def _is_closed(match: dict[Node, Any], pattern: Graph, ends: list[Node]) -> bool:
    """Whether nobody outside reads what lies inside the pattern."""
    inside = {node for key, node in match.items() if key.op != "placeholder"}
    inner = [node for key, node in match.items() if key.op not in ("placeholder", "get_attr") and key not in ends]
    return all(user in inside for node in inner for user in node.users)


def _matches(graph: Graph, pattern: Graph) -> list[tuple[Node, dict[Node, Any]]]:
    """All places where the pattern's last node fits and its nodes overlap with no earlier place."""
    ends = pattern.output_node().all_input_nodes
    taken: set[Node] = set()
    found = []
    for node in graph.nodes:
        match: dict[Node, Any] = {}
        if len(ends) != 1 or node.op in ("placeholder", "output") or not _fits(ends[0], node, match):
            continue
        inside = {here for key, here in match.items() if key.op != "placeholder"}
        if _is_closed(match, pattern, ends) and not inside & taken:
            taken |= inside
            found.append((node, match))
    return found


def replace_pattern(
    gm: GraphModule, pattern: Callable[..., Any] | GraphModule, replacement: Callable[..., Any] | GraphModule
) -> list[Match]:
    """Put a replacement wherever the pattern is found; its inputs are the pattern's, in order.

    Gives the places. Raises ValueError where the pattern gives several results.
    """
    old, new = _graph_of(pattern), _graph_of(replacement)
    if len(old.output_node().all_input_nodes) != 1:
        raise ValueError("the pattern has to end in one node")
    end = old.output_node().all_input_nodes[0]
    done: list[Match] = []
    replaced: dict[Node, Any] = {}
    for anchor, match in _matches(gm.graph, old):
        current = {key: replaced.get(node, node) if isinstance(node, Node) else node for key, node in match.items()}
        result = _put_in_place(gm.graph, anchor, old, new, current)
        replaced[anchor] = result
        done.append(Match(end, current))
    if isinstance(replacement, GraphModule):
        for node in new.nodes:
            if node.op in ("get_attr", "call_module") and _look_up(gm, node.target) is None:
                _put(gm, node.target, _look_up(replacement, node.target))
    gm.recompile()
    return done


def _put_in_place(graph: Graph, anchor: Node, old: Graph, new: Graph, match: dict[Node, Any]) -> Node:
    inputs = [node for node in old.nodes if node.op == "placeholder"]
    values: dict[Node, Any] = {
        node: match.get(given)
        for node, given in zip((n for n in new.nodes if n.op == "placeholder"), inputs, strict=True)
    }
    with graph.inserting_before(anchor):
        result: Node = graph.graph_copy(new, values)
    anchor.replace_all_uses_with(result)
    for node in [node for node in reversed(old.nodes) if node.op not in ("placeholder", "output")]:
        if not match[node].users:
            graph.erase_node(match[node])
    return result
