"""Recording what a Python function does with tensors as graphs, and running those instead.

The function runs as it is written, at every call. What it does with tensors is computed on copies, unseen, and noted
down; where it asks for a value, or ends, the graph made so far is given to the compiled form of that graph, which
computes with the real tensors, and the tensors that the function holds become its results.
"""

from __future__ import annotations

import builtins
import contextlib
import operator
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from stridescope.engine.autograd.function import Function as AutogradFunction
from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.dispatch.op import Op
from stridescope.engine.dispatch.recorded import Interceptors
from stridescope.engine.dtype import FLOAT
from stridescope.engine.events import journal
from stridescope.engine.ops.generator import default_generator
from stridescope.engine.tensor import Tensor, alias
from stridescope.engine.torch._dynamo import exc
from stridescope.engine.torch._dynamo.frames import stored_name, variable_of
from stridescope.engine.torch._ops import overload_of
from stridescope.engine.torch._watched_calls import VALUES, watched
from stridescope.engine.torch.fx.graph import Graph
from stridescope.engine.torch.fx.node import Node, map_aggregate
from stridescope.engine.torch.fx.qualified import plain_name, shown_target

Named = dict[int, tuple[str, Tensor, bool]]
Run = Callable[["Recorder", list[Tensor]], Sequence[Tensor]]
# Methods of which a graph keeps nothing: they tell what a tensor is like.
_TOLD = frozenset((
    "dim", "size", "numel", "stride", "nelement", "ndimension", "is_contiguous", "storage_offset", "element_size",
    "is_floating_point", "is_complex", "is_signed", "get_device", "type", "untyped_storage", "storage", "has_names",
    "is_inference", "is_conj", "is_neg", "is_set_to", "is_shared", "is_same_size",
))  # fmt: skip
_UNTRACKED = frozenset(("detach", "detach_", "data"))  # what they give requires no gradient
_BOXED = frozenset(("item", "__float__", "__int__", "__index__", "numpy", "__array__", "__complex__"))
_STATE = ("_array", "dtype", "_storage", "_version_counter", "_requires_grad", "_node", "_base_tensor", "_plain", "_id")


def become(tensor: Tensor, other: Tensor, given: bool = False) -> None:
    """Let a tensor object be what another one is, with its history.

    The other is not used any more, unless it is a ``given`` one, that the program has already.
    """
    for slot in _STATE:
        setattr(tensor, slot, getattr(other, slot))
    tensor.__dict__.clear()
    tensor.__dict__.update(other.__dict__)
    if given:
        tensor._id = 0
    else:
        other._id = 0


class Recorder:
    """One call of a function being recorded.

    Attributes:
        graph: the nodes since the last break.
        inputs: the tensors that the graph's placeholders stand for.
        shadows: their copies, which the recorded calls computed with.
    """

    current: Recorder | None = None

    def __init__(self, named: Named, run: Run, fullgraph: bool) -> None:
        self.named, self.run, self.fullgraph = named, run, fullgraph
        self.busy = False
        self.breaks: list[str] = []
        self.after_break = False
        self._begin()

    def _begin(self) -> None:
        self.graph = Graph()
        self.inputs: list[Tensor] = []
        self.shadows: list[Tensor] = []
        self._first_call: Node | None = None
        self._parts: set[Node] = set()  # those that take a result out of several
        self._known: dict[int, tuple[weakref.ref[Tensor], Node]] = {}
        self._shadow_of: dict[int, Tensor] = {}
        self._real_of: dict[int, Tensor] = {}
        self.grad_at_start = self._grad_enabled = grad_mode.enabled
        with self._unseen():
            self._random = default_generator.get_state()

    # ---- what is known of a tensor ---------------------------------------------------------------------------------

    def node_of(self, tensor: Tensor) -> Node | None:
        """The node that a tensor came from in this graph."""
        found = self._known.get(id(tensor))
        return found[1] if found is not None and found[0]() is tensor else None

    def _note(self, tensor: Tensor, node: Node) -> None:
        self._known[id(tensor)] = (weakref.ref(tensor), node)

    def _input(self, tensor: Tensor) -> Node:
        """The placeholder of a tensor that came from outside; made when it is first used."""
        node = self.node_of(tensor)
        if node is not None:
            return node
        name = self._free(self._source(tensor))
        with self.graph.inserting_before(self._first_call) if self._first_call else contextlib.nullcontext():
            node = self.graph.create_node("placeholder", name, name=name.lower(), type_expr=type(tensor))
        with self._unseen(), _without_grad():
            shadow = tensor.detach().clone()
        shadow._requires_grad = tensor._requires_grad
        self.inputs.append(tensor)
        self.shadows.append(shadow)
        self._note(tensor, node)
        self._shadow_of[id(tensor)], self._real_of[id(shadow)] = shadow, tensor
        return node

    def _free(self, name: str) -> str:
        """The name, or one like it that no other input has."""
        taken = {node.target for node in self.graph.find_nodes(op="placeholder")}
        start = name.removesuffix("_").rstrip("0") if name == "L_stack0_" else f"{name}"
        candidates = (name, *(f"{start}{number}_" for number in range(1, len(taken) + 1)))
        return next(candidate for candidate in candidates if candidate not in taken)

    def _source(self, tensor: Tensor) -> str:
        known = self.named.get(id(tensor))
        if known is not None and known[1] is tensor and not self.after_break:
            return known[0]
        variable = variable_of(tensor)
        if variable is not None:
            return f"L_{variable}_"
        return known[0] if known is not None and known[1] is tensor else "L_stack0_"

    # ---- one call --------------------------------------------------------------------------------------------------

    def __call__(
        self, target: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], method: str = ""
    ) -> Any:
        """Note a call down, and do it on the copies."""
        if self.busy or method in _TOLD or (method and not _tensors_in(args)):
            return run(*args, **kwargs)
        if method == "__iter__":
            return iter(self("unbind", lambda this: this.unbind(), args, {}, "unbind"))
        if method in VALUES or getattr(target, "__name__", "") in ("is_nonzero", "grad", "backward"):
            return self._value(method or target.__name__, run, args, kwargs)
        return self.record(target, run, args, kwargs, method)

    def _value(self, method: str, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Something asks for a tensor's elements: the graph ends here."""
        self.end_graph(exc.asked(method), first=args, allowed=method in _BOXED)
        with self.outside():
            return run(*args, **kwargs)

    def record(
        self, target: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], method: str = ""
    ) -> Any:
        """Add the node of a call and give its result."""
        wants = self._register(args, kwargs)
        result = self._computed(target, run, args, kwargs)
        if not _tensors_in(result) and result is not None:
            return result
        self._sync_grad_mode()
        kind = "call_method" if method and isinstance(target, str) else "call_function"
        name = None if result is None else stored_name()
        if name is None and not isinstance(target, str):
            name = plain_name(getattr(target, "overloadpacket", target))
        node_args, node_kwargs = map_aggregate((args, kwargs), self._leaf)
        node = self.graph.create_node(kind, target, node_args, dict(node_kwargs), name)
        self._first_call = self._first_call or node
        differentiable = wants and grad_mode.enabled and (args[-1] if target is getattr else target) not in _UNTRACKED
        return self._noted(result, node, differentiable, isinstance(target, str))

    def _register(self, args: Any, kwargs: Any) -> bool:
        """Make the placeholders of what comes from outside, modules' tensors first; whether one requires grad."""
        tensors = _tensors_in((args, kwargs))
        outside = [t for t in tensors if self.node_of(t) is None]
        for tensor in sorted(outside, key=lambda t: not self.named.get(id(t), ("", t, False))[2]):
            self._input(tensor)
        return any(t._requires_grad for t in tensors)

    def _leaf(self, leaf: Any) -> Any:
        return self._input(leaf) if isinstance(leaf, Tensor) else leaf

    def _computed(self, target: Any, run: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """What the call gives on the copies."""

        def copies(leaf: Any) -> Any:
            return self._shadow_of.get(id(leaf), leaf) if isinstance(leaf, Tensor) else leaf

        plain_args, plain_kwargs = _mapped(args, copies), _mapped(kwargs, copies)
        try:
            with self._unseen(), _without_grad():
                return run(*plain_args, **plain_kwargs)
        except RuntimeError as error:
            if isinstance(error, NotImplementedError):
                raise
            raise exc.TorchRuntimeError(exc.failed(f"call_function {shown_target(target)}", error)) from error

    def _noted(self, result: Any, node: Node, differentiable: bool, is_method: bool) -> Any:
        """The result, with its tensors known; a copy that was written into is the tensor that it is a copy of."""
        if isinstance(result, Tensor):
            real = self._real_of.get(id(result), result)
            if real is not result and is_method and not str(node.target).endswith("_"):  # such as x.float()
                real = result = alias(result)
            if self.node_of(real) is None or not is_method:
                self._note(real, node)
            if differentiable and real is result and real.dtype.category >= FLOAT:
                real._requires_grad = True
            return real
        if isinstance(result, (tuple, list)):
            items = []
            for place, item in enumerate(result):
                if isinstance(item, (Tensor, tuple, list)):
                    part = self.graph.call_function(operator.getitem, (node, place))
                    self._parts.add(part)
                    item = self._noted(item, part, differentiable, is_method)
                items.append(item)
            return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
        return result

    def _sync_grad_mode(self) -> None:
        """Note down that the program switched gradients on or off."""
        if grad_mode.enabled != self._grad_enabled:
            from stridescope.engine.torch import _C

            self._grad_enabled = grad_mode.enabled
            node = self.graph.call_function(_C._set_grad_enabled, (grad_mode.enabled,))
            self._first_call = self._first_call or node

    def op(self, op: Op, call: Callable[..., Any], *args: Any) -> Any:
        """An op that no watched call made: it is noted down by itself."""
        if self.busy:
            return call(*args)
        overload = overload_of(op)
        positional, named = overload.split(args)
        return self.record(overload, lambda *a, **k: op.call(*a, **k), positional, named)

    # ---- the end of a graph ----------------------------------------------------------------------------------------

    def end_graph(self, reason: str | None, first: Any = (), allowed: bool = False) -> dict[int, Tensor]:
        """Run what was recorded with the real tensors; what the program holds becomes its results.

        Gives, by the identity of each such tensor, its result; raises Unsupported where there is to be one graph.
        """
        if reason is not None:
            if self.fullgraph and not allowed:
                raise exc.Unsupported(reason)
            self.breaks.append(reason)
        self._sync_grad_mode()
        alive = {id(t): t for t in _tensors_in(first) if self._is_result(t)}
        for reference, _ in list(self._known.values()):
            tensor = reference()
            if tensor is not None and self._is_result(tensor):
                alive.setdefault(id(tensor), tensor)
        results = self._run(list(alive.values()))
        if reason is not None:
            for key, result in results.items():
                become(alive[key], result, self._is_input(result))
            self.after_break = True
            self._begin()
        return results

    def _is_input(self, tensor: Tensor) -> bool:
        return any(tensor is given for given in self.inputs)

    def _is_result(self, tensor: Tensor) -> bool:
        node = self.node_of(tensor)
        return node is not None and node.op != "placeholder" and id(tensor) not in self._shadow_of

    def _run(self, alive: list[Tensor]) -> dict[int, Tensor]:
        if not any(node.op.startswith("call") for node in self.graph.nodes):
            return {}
        self.graph.output(tuple(self.node_of(tensor) for tensor in alive))
        for node in list(reversed(self.graph.nodes)):
            if node in self._parts and not node.users:
                self.graph.erase_node(node)
        with self.outside():
            default_generator.set_state(self._random)
            results = self.run(self, self.inputs)
        return {id(tensor): result for tensor, result in zip(alive, results, strict=True)}

    def finished(self, result: Any) -> Any:
        """What the function gives, with the results of the last graph."""
        results = self.end_graph(None, first=_tensors_in(result))
        known = {id(reference()): reference() for reference, _ in self._known.values()}
        given = _mapped(result, lambda leaf: results.get(id(leaf), leaf))
        returned = {id(t) for t in _tensors_in(result)}
        for key, real in results.items():
            tensor = known.get(key)
            if tensor is not None and key not in returned:  # the program put it somewhere
                become(tensor, real, self._is_input(real))
        return given

    # ---- around ----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def outside(self) -> Iterator[None]:
        """What happens in the block is not recorded."""
        before, self.busy = self.busy, True
        try:
            yield
        finally:
            self.busy = before

    @contextlib.contextmanager
    def _unseen(self) -> Iterator[None]:
        """What happens in the block is neither recorded as a graph nor in the session."""
        with self.outside(), journal.muted():
            yield

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Record what the program does in the block."""
        outer, Recorder.current = Recorder.current, self
        Interceptors.before.append(self.op)
        journal.require_full(1)
        try:
            with watched(self), _broken_at(self):
                yield
        finally:
            journal.require_full(-1)
            Interceptors.before.remove(self.op)
            Recorder.current = outer


@contextlib.contextmanager
def _without_grad() -> Iterator[None]:
    """Make no history, whatever the program's own mode."""
    before, grad_mode.enabled = grad_mode.enabled, False
    try:
        yield
    finally:
        grad_mode.enabled = before


@contextlib.contextmanager
def _broken_at(recorder: Recorder) -> Iterator[None]:
    """Let printing and custom functions end the graph."""
    usual_print, usual_apply = builtins.print, vars(AutogradFunction)["apply"]

    def say(*args: Any, **kwargs: Any) -> None:
        if not recorder.busy:
            recorder.end_graph(exc.asked("print"))
        with recorder.outside():
            usual_print(*args, **kwargs)

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if not recorder.busy:
            recorder.end_graph(exc.asked("apply"))
        with recorder.outside():
            return usual_apply.__func__(cls, *args, **kwargs)

    kind: Any = AutogradFunction
    builtins.print, kind.apply = say, classmethod(apply)
    try:
        yield
    finally:
        builtins.print, kind.apply = usual_print, usual_apply


def _tensors_in(values: Any) -> list[Tensor]:
    """The tensors in a structure of arguments, in order."""
    found: list[Tensor] = []

    def look(leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            found.append(leaf)
        return leaf

    map_aggregate(values, look)
    return found


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """The structure with its tensors changed; lists, dicts and tuples keep their types."""
    if isinstance(value, tuple):
        items = [_mapped(item, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if type(value) is list:
        return [_mapped(item, change) for item in value]
    if isinstance(value, dict) and type(value).__init__ is dict.__init__:
        return {key: _mapped(item, change) for key, item in value.items()}
    if isinstance(value, slice):
        return slice(*(_mapped(part, change) for part in (value.start, value.stop, value.step)))
    return change(value)
