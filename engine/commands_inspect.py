"""``stridescope inspect``: what a recording shows at a step, as tables or JSON.

``WHATS`` lists what can be asked for; each is a function from (recording, step) to rows or facts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from stridescope.engine.commands import fail
from stridescope.engine.commands_table import Row, print_facts, print_rows
from stridescope.engine.events import Event
from stridescope.engine.recording.allocator_state import RequestState
from stridescope.engine.recording.model import ModulePart, ModuleState, NodeState, State, TensorState
from stridescope.engine.recording.module_tree import walk
from stridescope.engine.recording.reader import Recording
from stridescope.engine.recording.store import RecordingError


class BadRequest(ValueError):
    """What was asked for does not exist; the text says what does."""


def inspect(path: str, step: int | None, what: str, as_json: bool) -> int:
    """Print what a recording shows at a step (by default the last); returns the exit status."""
    try:
        with Recording.open(path) as recording:
            _print(recording, step_of(recording, step), what, as_json)
    except BadRequest as error:
        return fail(str(error), 2)
    except RecordingError as error:
        return fail(str(error))
    return 0


def step_of(recording: Recording, asked: int | None) -> int:
    """Return the step that is asked for: the last by default, counted from the end when negative."""
    steps = recording.steps
    at = steps - 1 if asked is None else asked + steps if asked < 0 else asked
    if not 0 <= at < steps and (steps or asked is not None):
        raise BadRequest(f"there is no step {asked}: {recording.path} has the steps 0 to {steps - 1}")
    return at


def _print(recording: Recording, step: int, what: str, as_json: bool) -> None:
    name, _, argument = what.partition(":")
    if name == "summary" and not argument:
        print_facts(summary(recording, step), as_json)
    elif name == "history" and argument:
        print_rows(history(recording, step, argument), as_json)
    elif name in WHATS and not argument:
        print_rows(WHATS[name](recording, step), as_json)
    else:
        raise BadRequest(f"nothing is called '{what}': choose summary, {', '.join(WHATS)} or history:ID")


def summary(recording: Recording, step: int) -> Row:
    """Return the facts of the run, and what there is at the step."""
    meta, state = recording.meta, recording.state(step)
    count = state.allocator.count
    return {
        "script": meta.get("script"),
        "arguments": tuple(meta.get("argv", ())),
        "python": meta.get("python"),
        "created": meta.get("created"),
        "ended": _ending(recording),
        "status": meta.get("status"),
        "steps": recording.steps,
        "lines": len(recording.lines()),
        "ops": len(recording.ops()),
        "backward nodes": len(recording.backwards()),
        "step": step,
        "line": _place(recording, state),
        "tensors": len(state.tensors),
        "storages": len(state.storages),
        "bytes": sum(storage.nbytes for storage in state.storages.values() if storage.device != "meta"),
        "nodes": len(state.nodes),
        "allocated": count("allocated_bytes.current"),
        "reserved": count("reserved_bytes.current"),
        "error": f"{state.error[0]}: {state.error[1]}" if state.error else None,
    }


def _ending(recording: Recording) -> str:
    if recording.live:
        return "no, it still grows"
    if recording.meta.get("failure"):
        return f"no: {recording.meta['failure']}"
    return "yes" if recording.meta.get("ended") else "no, its process was killed"


def _place(recording: Recording, state: State) -> str | None:
    source = recording.sources.get(state.source)
    return f"{source.path}:{state.line}" if source else str(state.line) if state.line else None


def event_row(step: int, event: Event) -> Row:
    """Return an event as a row: its name, its family and the sentence people read."""
    fields = {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}  # type: ignore[arg-type]
    return {
        "step": step,
        "event": type(event).__name__,
        "family": event.family,
        "text": event.sentence.format_map(fields),
        "fields": fields,
    }


def steps(recording: Recording, step: int) -> Iterator[Row]:
    """Return every event up to the step."""
    return map(event_row, range(step + 1), recording.events(0, step) if step >= 0 else [])


def tensors(recording: Recording, step: int) -> Iterator[Row]:
    """Return every live tensor."""
    state = recording.state(step)
    return (_tensor_row(state, tensor) for tensor in state.tensors.values())


def _tensor_row(state: State, tensor: TensorState) -> Row:
    storage, node = state.storages.get(tensor.storage), state.nodes.get(tensor.node)
    return {
        "id": tensor.id,
        "names": tensor.names,
        "sizes": list(tensor.sizes),
        "strides": list(tensor.strides),
        "offset": tensor.offset,
        "dtype": tensor.dtype,
        "device": storage.device if storage else None,
        "storage": tensor.storage,
        "base": tensor.base or None,
        "version": tensor.version,
        "requires_grad": tensor.requires_grad,
        "grad_fn": node.name if node else None,
        "grad": tensor.grad or None,
        "op": tensor.op,
        "born": tensor.born,
    }


def storages(recording: Recording, step: int) -> Iterator[Row]:
    """Return every live storage and the tensors that look into it."""
    state = recording.state(step)
    viewers: dict[int, list[int]] = {}
    for tensor in state.tensors.values():
        viewers.setdefault(tensor.storage, []).append(tensor.id)
    for storage in state.storages.values():
        yield {
            "id": storage.id,
            "nbytes": storage.nbytes,
            "device": storage.device,
            "address": storage.address,
            "tensors": tuple(viewers.get(storage.id, ())),
            "born": storage.born,
            "written": storage.written,
            "values": storage.values,
            "summary": storage.summary,
        }


def graph(recording: Recording, step: int) -> Iterator[Row]:
    """Return every live node of the autograd graph."""
    return map(_node_row, recording.state(step).nodes.values())


def _node_row(node: NodeState) -> Row:
    return {
        "id": node.id,
        "name": node.name,
        "sequence_nr": node.sequence_nr,
        "next": node.edges,
        "variable": node.variable or None,
        "saved": tuple(f"{saved.field}={saved.tensor} v{saved.version}" for saved in node.saved),
        "freed": node.freed,
        "phase": node.phase,
        "waiting": node.waiting,
        "born": node.born,
    }


def backward(recording: Recording, step: int) -> Iterator[Row]:
    """Return the gradients sent in the current or last backward pass, in order."""
    state = recording.state(step)
    for sent in state.backward.sent if state.backward else ():
        node, receiver = state.nodes.get(sent.node), state.nodes.get(sent.receiver)
        yield {
            "step": sent.step,
            "pass": state.backward.number if state.backward else 0,
            "node": sent.node,
            "name": node.name if node else None,
            "receiver": sent.receiver,
            "receiver name": receiver.name if receiver else None,
            "input": sent.input_nr,
            "gradient": sent.gradient,
            "phase": receiver.phase if receiver else None,
        }


def allocator(recording: Recording, step: int) -> Iterator[Row]:
    """Return every block of the caching allocator, segment by segment, and what the last search made of it."""
    state = recording.state(step)
    awaited = {pending.address: pending.stream for pending in state.allocator.pending}
    reasons = _reasons(state.allocator.request)
    for segment in sorted(state.allocator.segments.values(), key=lambda segment: segment.address):
        for block in state.allocator.blocks_of(segment):
            yield {
                "segment": segment.address,
                "device": segment.device,
                "pool": segment.pool,
                "address": block.address,
                "size": block.size,
                "requested": block.requested,
                "state": block.state,
                "stream": block.stream,
                "storage": block.storage or None,
                "born": block.born,
                "awaits stream": awaited.get(block.address),
                "why": reasons.get(block.address),
            }


def _reasons(request: RequestState | None) -> dict[int, str]:
    """What the last request made of the blocks it looked at, and why its own block is as it is."""
    if request is None:
        return {}
    found = {block.address: block.verdict for block in request.considered}
    if request.address:
        verdict = found.get(request.address, "a new segment: no cached block serves")
        found[request.address] = "; ".join([verdict, *request.notes])
    return found


def modules(recording: Recording, step: int) -> Iterator[Row]:
    """Return the modules that variables lead to, each followed by its parameters and buffers."""
    state = recording.state(step)
    for module in walk(state):
        yield _module_row(module, None, None)
        for part in module.parts.values():
            if part.role != "module" and part.id in state.tensors:
                yield _module_row(module, part, state.tensors[part.id])


def _module_row(module: ModuleState, part: ModulePart | None, tensor: TensorState | None) -> Row:
    return {
        "module": module.path,
        "kind": module.kind,
        "training": module.training,
        "name": part and part.name,
        "role": part.role if part else "module",
        "tensor": tensor and tensor.id,
        "sizes": tensor and list(tensor.sizes),
        "dtype": tensor and tensor.dtype,
        "requires_grad": tensor and tensor.requires_grad,
        "grad": tensor and tensor.grad or None,
    }


WHATS: dict[str, Callable[[Recording, int], Iterator[Row]]] = {
    "steps": steps,
    "tensors": tensors,
    "storages": storages,
    "graph": graph,
    "backward": backward,
    "allocator": allocator,
    "modules": modules,
}


def history(recording: Recording, step: int, asked: str) -> Iterator[Row]:
    """Return the events that touch something: a tensor's name or id, or ``storage:ID`` or ``node:ID``."""
    kind, _, text = asked.rpartition(":")
    if kind not in ("", "tensor", "storage", "node", "frame"):
        raise BadRequest(
            f"'{kind}' has no history: write history:ID, history:NAME, history:storage:ID or history:node:ID"
        )
    id = int(text) if text.isdecimal() else _tensor_named(recording.state(step), text)
    found = [at for at in recording.history(kind or "tensor", id) if at <= step]
    if not found:
        raise BadRequest(f"no {kind or 'tensor'} {text} appears up to step {step}")
    return (event_row(at, recording.event(at)) for at in found)


def _tensor_named(state: State, name: str) -> int:
    for tensor in state.tensors.values():
        if name in tensor.names:
            return tensor.id
    raise BadRequest(f"no tensor is called '{name}' at step {state.step}")
