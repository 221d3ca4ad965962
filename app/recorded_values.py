"""Expressions over recorded values: what the console, watches and conditions can ask of the past.

The script's code never runs in the window. Names stand for what the recording tells of them: numbers, texts, tuples,
and tensors as NumPy arrays of the elements that were kept. A small part of Python's expressions is worked out here;
anything else is refused in one line.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from stridescope.app.text import tr
from stridescope.app.values import elements_of
from stridescope.engine.printed import numbers
from stridescope.engine.recording.model import Frame, ModuleState, State, TensorState

LARGEST = 1 << 22  # elements that an expression may take into its hands
_LONGEST = 4000  # characters of an answer
_LONGEST_POWER = 4096  # bits of a whole number that a power may have
_UNSAID = ("float32", "int64", "bool", "complex64")  # dtypes that a printed tensor does not name
_HEAD = "tensor("


class NotRecorded(Exception):
    """An expression that the recording cannot answer; the message says why."""


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_, ast.Invert: operator.invert,
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda left, right: left in right, ast.NotIn: lambda left, right: left not in right,
}  # fmt: skip
_REDUCTIONS = ("sum", "mean", "min", "max", "std", "all", "any", "argmax", "argmin", "item", "tolist")
_FUNCTIONS: dict[str, Callable[..., Any]] = {"len": len, "abs": abs, "min": min, "max": max, "sum": sum}


class PastTensor:
    """A recorded tensor: its facts, and its elements where the recording kept them."""

    def __init__(self, state: State, tensor: TensorState) -> None:
        self.state, self.tensor = state, tensor

    def array(self) -> np.ndarray:
        """Return the elements, read from the storage's bytes by the address formula."""
        tensor, storage = self.tensor, self.state.storages.get(self.tensor.storage)
        flat = elements_of(storage.values, tensor.dtype) if storage is not None else None
        count = int(np.prod(tensor.sizes))
        if flat is None or count > LARGEST:
            raise NotRecorded(tr("the elements of this tensor are not kept"))
        if not count:
            return np.zeros(tensor.sizes, flat.dtype)
        strides = [stride * flat.itemsize for stride in tensor.strides]
        return np.lib.stride_tricks.as_strided(flat[tensor.offset :], tensor.sizes, strides)

    def attribute(self, name: str) -> Any:
        """Return a fact by its PyTorch name."""
        tensor, state = self.tensor, self.state
        storage = state.storages.get(tensor.storage)
        facts: dict[str, Any] = {
            "shape": Size(tensor.sizes), "dtype": Unread(f"torch.{tensor.dtype}"), "ndim": len(tensor.sizes),
            "requires_grad": tensor.requires_grad or bool(tensor.node), "_version": tensor.version,
            "device": Device(storage.device if storage else "cpu"), "is_leaf": not tensor.node,
        }  # fmt: skip
        if name == "grad":
            grad = state.tensors.get(tensor.grad)
            return PastTensor(state, grad) if grad is not None else None
        if name == "grad_fn":
            return state.nodes[tensor.node].name if tensor.node in state.nodes else None
        if name == "T":
            return self.array().T
        if name not in facts:
            raise NotRecorded(tr("the recording does not tell {name}", name=name))
        return facts[name]

    def call(self, name: str) -> Any:
        """Return what a method without arguments gives."""
        tensor = self.tensor
        facts = {
            "size": Size(tensor.sizes),
            "stride": tensor.strides,
            "storage_offset": tensor.offset,
            "dim": len(tensor.sizes),
        }
        facts["numel"] = int(np.prod(tensor.sizes))
        if name in facts:
            return facts[name]
        return _reduce(self.array(), name)


class Size(tuple[int, ...]):
    """The sizes of a recorded tensor, written as the script's are."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"


class Device(str):
    """Where a recorded tensor lies."""

    __slots__ = ()

    def __repr__(self) -> str:
        kind, _, index = self.partition(":")
        return f"device(type='{kind}'{f', index={index}' if index else ''})"


class PastModule:
    """A recorded module: its parts by name, and whether it trained."""

    def __init__(self, state: State, module: ModuleState) -> None:
        self.state, self.module = state, module

    def attribute(self, name: str) -> Any:
        """Return a part, or ``training``."""
        if name == "training":
            return self.module.training
        if (part := self.module.parts.get(name)) is None:
            raise NotRecorded(tr("the recording does not tell {name}", name=name))
        return seen(self.state, part.id if part.role != "module" else 0, part.id)

    def item(self, key: Any) -> Any:
        """Return a part by its place or name, as ``Sequential``, ``ModuleList`` and ``ModuleDict`` give it."""
        names = list(self.module.parts)
        if isinstance(key, int) and -len(names) <= key < len(names):
            return self.attribute(names[key])
        return self.attribute(str(key))


def seen(state: State, tensor: int, module: int) -> Any:
    """Return a tensor or module of the past; raises NotRecorded where it is gone."""
    if tensor in state.tensors:
        return PastTensor(state, state.tensors[tensor])
    if module in state.modules:
        return PastModule(state, state.modules[module])
    raise NotRecorded(tr("what it stood for is not recorded"))


def evaluate(state: State, text: str, level: int = 0) -> Any:
    """Return the value of an expression in a frame, ``level`` frames from the innermost; raises NotRecorded."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError) as error:
        why = tr("in the past only expressions can be looked at: {why}", why=error)
        raise NotRecorded(why) from None
    frames = state.stack[::-1]
    try:
        return _Evaluator(state, frames[level] if level < len(frames) else None, state.frames).value(tree.body)
    except NotRecorded:
        raise
    except Exception as error:
        raise NotRecorded(f"{type(error).__name__}: {error}") from None


def answer(state: State, text: str) -> tuple[str, bool]:
    """Return the text of an expression's value and True, or why there is none and False."""
    try:
        return text_of(evaluate(state, text)), True
    except NotRecorded as error:
        return str(error), False


def text_of(value: Any) -> str:
    """Return a value as the console shows it, a tensor as the script would print it."""
    if isinstance(value, PastTensor):
        return _tensor_text(value)[:_LONGEST]
    if isinstance(value, PastModule):
        return f"<{value.module.kind}: {', '.join(value.module.parts)}>"[:_LONGEST]
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        return f"{_HEAD}{_numbers(array)}{_dtype_words(array.dtype.name)})"[:_LONGEST]
    return repr(value)[:_LONGEST]


def _tensor_text(value: PastTensor) -> str:
    tensor, state = value.tensor, value.state
    try:
        values = _numbers(value.array())
    except NotRecorded:
        values = f"…, size={tensor.sizes}"
    device = value.attribute("device")
    history = ", requires_grad=True" if tensor.requires_grad else ""
    if tensor.node in state.nodes:
        history = f", grad_fn=<{state.nodes[tensor.node].name}>"
    place = "" if device == "cpu" else f", device='{device}'"
    return f"{_HEAD}{values}{place}{_dtype_words(tensor.dtype)}{history})"


def _numbers(array: np.ndarray) -> str:
    return numbers(array if array.dtype.isbuiltin == 1 else array.astype(np.float32), len(_HEAD))


def _dtype_words(name: str) -> str:
    return "" if name in _UNSAID else f", dtype=torch.{name}"


class _Evaluator:
    """Works out one expression."""

    def __init__(self, state: State, frame: Frame | None, frames: list[Frame]) -> None:
        self._state, self._spaces = state, [space for space in (frame, frames[0] if frames else None) if space]

    def value(self, node: ast.expr) -> Any:
        """Return the value of a part of the expression."""
        handler = getattr(self, f"_{type(node).__name__.lower()}", None)
        if handler is None:
            raise NotRecorded(tr("the past is only looked at: this expression would have to be run"))
        return handler(node)

    def _plain(self, node: ast.expr) -> Any:
        value = self.value(node)
        return value.array() if isinstance(value, PastTensor) else value

    def _constant(self, node: ast.Constant) -> Any:
        return node.value

    def _name(self, node: ast.Name) -> Any:
        for space in self._spaces:
            if (name := space.names.get(node.id)) is not None:
                if name.tensor in self._state.tensors or name.module in self._state.modules:
                    return seen(self._state, name.tensor, name.module)
                return _literal(name.text)
        raise NotRecorded(tr("the name {name} stands for nothing here", name=node.id))

    def _path(self, node: ast.expr) -> Any:
        """Return the tensor or module that a recorded path such as ``batch['x']`` leads to, else None."""
        path = ast.unparse(node)
        for space in self._spaces:
            name = space.names.get(path)
            if name is not None and (name.tensor in self._state.tensors or name.module in self._state.modules):
                return seen(self._state, name.tensor, name.module)
        return None

    def _attribute(self, node: ast.Attribute) -> Any:
        if (found := self._path(node)) is not None:
            return found
        value = self.value(node.value)
        if isinstance(value, (PastTensor, PastModule)):
            return value.attribute(node.attr)
        if isinstance(value, np.ndarray) and node.attr in ("shape", "ndim", "T", "size"):
            found = getattr(value, node.attr)
            return Size(found) if node.attr == "shape" else found
        raise NotRecorded(tr("the recording does not tell {name}", name=node.attr))

    def _subscript(self, node: ast.Subscript) -> Any:
        if (found := self._path(node)) is not None:
            return found
        value, key = self._plain(node.value), self._plain(node.slice)
        return value.item(key) if isinstance(value, PastModule) else value[key]

    def _slice(self, node: ast.Slice) -> slice:
        return slice(*(None if part is None else self._plain(part) for part in (node.lower, node.upper, node.step)))

    def _tuple(self, node: ast.Tuple) -> tuple[Any, ...]:
        return tuple(map(self._plain, node.elts))

    def _list(self, node: ast.List) -> list[Any]:
        return list(map(self._plain, node.elts))

    def _binop(self, node: ast.BinOp) -> Any:
        left, right = self._plain(node.left), self._plain(node.right)
        if isinstance(node.op, ast.Pow):
            return _promoted(_power(left, right), left, right)
        if isinstance(node.op, ast.Mult) and isinstance(left, (str, list, tuple)) | isinstance(
            right, (str, list, tuple)
        ):
            raise NotRecorded(tr("the past is only looked at: this expression would have to be run"))
        return _promoted(_BINARY[type(node.op)](left, right), left, right)

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        return _UNARY[type(node.op)](self._plain(node.operand))

    def _boolop(self, node: ast.BoolOp) -> Any:
        value = self._plain(node.values[0])
        for part in node.values[1:]:
            if bool(value) != isinstance(node.op, ast.And):
                return value
            value = self._plain(part)
        return value

    def _compare(self, node: ast.Compare) -> Any:
        left, result = self._plain(node.left), True
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = self._plain(part)
            result, left = _COMPARE[type(op)](left, right), right
            if not np.all(result):
                break
        return result

    def _call(self, node: ast.Call) -> Any:
        arguments = list(map(self._plain, node.args))
        if isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS and not node.keywords:
            return _FUNCTIONS[node.func.id](*arguments)
        if isinstance(node.func, ast.Attribute) and not arguments and not node.keywords:
            value = self.value(node.func.value)
            return value.call(node.func.attr) if isinstance(value, PastTensor) else _reduce(value, node.func.attr)
        raise NotRecorded(tr("the past is only looked at: this expression would have to be run"))


def _reduce(value: Any, name: str) -> Any:
    if name not in _REDUCTIONS or not isinstance(value, (np.ndarray, np.generic)):
        raise NotRecorded(tr("the past is only looked at: this expression would have to be run"))
    if name == "std" and value.size:  # of a sample, as PyTorch's is
        wide = value.astype(np.float64)
        spread = wide.std(ddof=1) if value.size > 1 else np.float64("nan")
        return spread.astype(value.dtype)
    return getattr(value, name)()


def _promoted(result: Any, *operands: Any) -> Any:
    """Return what was computed in PyTorch's dtype: whole numbers do not make a float any wider."""
    if not isinstance(result, (np.ndarray, np.generic)) or result.dtype.kind != "f":
        return result
    kinds = [value.dtype for value in operands if isinstance(value, (np.ndarray, np.generic))]
    floats = [kind for kind in kinds if kind.kind == "f"]
    return result.astype(np.result_type(*floats) if floats else np.float32)


def _power(base: Any, exponent: Any) -> Any:
    """Return a power; one of whole numbers that would never end is refused."""
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * exponent > _LONGEST_POWER:
        raise NotRecorded(tr("the past is only looked at: this expression would have to be run"))
    return base**exponent


def _literal(text: str) -> Any:
    """Return the value that a recorded text stands for; a text that is no literal stands for itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return Unread(text)


class Unread(str):
    """A recorded text that is no literal: shown as it is, equal only to itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)
