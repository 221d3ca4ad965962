"""``stridescope ops``: the operator reference, read off the declarations."""

from __future__ import annotations

from stridescope.engine.commands import fail
from stridescope.engine.commands_table import Row, print_facts, print_rows
from stridescope.engine.dispatch.op import Op


def ops(name: str | None, as_json: bool) -> int:
    """Print all ops, or those of one name in full; returns the exit status."""
    from stridescope.engine.ops import OPS

    if name is None:
        print_rows(({"op": op.qualified, "kind": op.kind, "doc": op.doc} for op in OPS), as_json)
        return 0
    wanted = name.removeprefix("aten::").removeprefix("torch.")
    found = [op for op in OPS if wanted in (op.name, op.qualified)]
    if not found:
        near = sorted({op.name for op in OPS if wanted.strip("_") in op.name})
        return fail(f"there is no op '{name}'" + (f": did you mean {', '.join(near[:8])}?" if near else ""))
    if as_json:
        print_rows(map(_facts, found), as_json)
        return 0
    for number, op in enumerate(found):
        print(end="\n" if number else "")
        print_facts(_facts(op), as_json)
    return 0


def _facts(op: Op) -> Row:
    schema = op.schema
    return {
        "op": op.qualified,
        "schema": schema.text,
        "doc": op.doc,
        "kind": op.kind,
        "function": f"{op.namespace}.{op.name}" if op.function else None,
        "method": f"Tensor.{op.name}" if op.method else None,
        "shares storage": schema.is_view,
        "writes": schema.writes,
        "grad_fn": op.derivative.name if op.derivative else None,
        "gradients": op.derivative.inputs if op.derivative else (),
    }
