"""Writing an ONNX model as the bytes of its protocol buffer (the field numbers are those of onnx.proto)."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.onnx.model import Graph, Model, Node, Value

# TensorProto.DataType by dtype.
DATA_TYPES = {
    "float32": 1, "uint8": 2, "int8": 3, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11,
    "complex64": 14, "complex128": 15, "bfloat16": 16,
}  # fmt: skip
FLOAT, INT, STRING, TENSOR, FLOATS, INTS = 1, 2, 3, 4, 6, 7  # AttributeProto.AttributeType


def varint(number: int) -> bytes:
    """An integer of any size, seven bits a byte; negative ones as 64 bits."""
    number &= (1 << 64) - 1
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    return bytes([*written, number])


def number(field: int, value: int) -> bytes:
    """A field that is an integer."""
    return varint(field << 3) + varint(value)


def real(field: int, value: float) -> bytes:
    """A field that is a 32-bit float."""
    return varint(field << 3 | 5) + struct.pack("<f", value)


def message(field: int, content: bytes | str) -> bytes:
    """A field that is text, bytes or another message."""
    data = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(data)) + data


def _all(parts: Iterable[bytes]) -> bytes:
    return b"".join(parts)


def tensor(value: Tensor, name: str = "") -> bytes:
    """TensorProto: the sizes, the dtype and the elements in order, little-endian."""
    array = value.detach().cpu().contiguous()._array
    kind = str(value.dtype).removeprefix("torch.")
    return _all((
        *(number(1, size) for size in array.shape), number(2, DATA_TYPES[kind]), message(8, name) if name else b"",
        message(9, array.tobytes()),
    ))  # fmt: skip


def _attribute(name: str, value: Any) -> bytes:
    start = message(1, name)
    if isinstance(value, (bool, int)):
        return start + number(3, int(value)) + number(20, INT)
    if isinstance(value, float):
        return start + real(2, value) + number(20, FLOAT)
    if isinstance(value, str):
        return start + message(4, value) + number(20, STRING)
    if isinstance(value, Tensor):
        return start + message(5, tensor(value)) + number(20, TENSOR)
    if any(isinstance(item, float) for item in value):
        return start + _all(real(7, item) for item in value) + number(20, FLOATS)
    return start + _all(number(8, item) for item in value) + number(20, INTS)


def _node(node: Node) -> bytes:
    return _all((
        *(message(1, "" if value is None else value.name) for value in node.inputs),
        *(message(2, value.name) for value in node.outputs),
        message(3, node.name), message(4, node.op_type),
        *(message(5, _attribute(name, value)) for name, value in node.attributes.items()),
        message(7, node.domain) if node.domain else b"",
    ))  # fmt: skip


def _value(value: Value) -> bytes:
    dims = _all(message(1, message(2, s) if isinstance(s, str) else number(1, s)) for s in value.shape)
    kind = number(1, DATA_TYPES[value.dtype]) + message(2, dims)
    return message(1, value.name) + message(2, message(1, kind))


def _graph(graph: Graph) -> bytes:
    return _all((
        *(message(1, _node(node)) for node in graph.nodes), message(2, graph.name),
        *(message(5, tensor(value, name)) for name, value in graph.initializers.items()),
        *(message(11, _value(value)) for value in graph.inputs),
        *(message(12, _value(value)) for value in graph.outputs),
    ))  # fmt: skip


def model_bytes(model: Model) -> bytes:
    """ModelProto."""
    return _all((
        number(1, model.ir_version), message(2, model.producer_name), message(3, model.producer_version),
        message(7, _graph(model.graph)), message(8, message(1, "") + number(2, model.opset)),
    ))  # fmt: skip
