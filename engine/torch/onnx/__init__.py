"""``torch.onnx``: models in the form that other runtimes read, made from ``torch.export``'s graphs."""

from __future__ import annotations

import os
import pathlib
from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch import export as exporting
from stridescope.engine.torch._not_yet import missing_from, refusal
from stridescope.engine.torch.export.errors import GuardOnDataDependentSymNode
from stridescope.engine.torch.export.program import ExportedProgram, InputKind
from stridescope.engine.torch.fx.graph_module import _look_up
from stridescope.engine.torch.nn.modules.module import Module
from stridescope.engine.torch.onnx.builder import Builder, dtype_name, example
from stridescope.engine.torch.onnx.model import Model, Value
from stridescope.engine.torch.onnx.protobuf import model_bytes
from stridescope.engine.torch.onnx.translations import OPS
from stridescope.engine.torch.version import __version__

OPSET = 20


class OnnxExporterError(RuntimeError):
    """The model could not be exported."""

    __module__ = "torch.onnx.errors"


class TorchExportError(OnnxExporterError):
    """The model has no graph of ops."""

    __module__ = "torch.onnx._internal.exporter._errors"


class ConversionError(OnnxExporterError):
    """An op of the graph is not in ONNX."""

    __module__ = "torch.onnx._internal.exporter._errors"


class ONNXProgram:
    """An exported model.

    Attributes:
        model: what is in the file; ``model.graph`` are its nodes.
        exported_program: the graph of aten ops that it was made from.
    """

    __module__ = "torch.onnx"

    def __init__(self, model: Model, exported_program: ExportedProgram) -> None:
        self.model, self.exported_program = model, exported_program

    @property
    def model_proto(self) -> bytes:
        """The bytes of the file."""
        return model_bytes(self.model)

    def save(self, destination: str | os.PathLike[str], **options: Any) -> None:
        """Write the ``.onnx`` file."""
        pathlib.Path(destination).write_bytes(model_bytes(self.model))

    def optimize(self) -> None:
        """The graph stays as it is."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Running a model takes a runtime, which is not here."""
        raise refusal("torch.onnx.ONNXProgram", "__call__")

    def __repr__(self) -> str:
        lines = [f"    {node!r}" for node in self.model.graph]
        inputs = ", ".join(map(repr, self.model.graph.inputs))
        outputs = ", ".join(map(repr, self.model.graph.outputs))
        return f"ONNXProgram(\n  inputs=({inputs})\n" + "\n".join(lines) + f"\n  return {outputs}\n)"


def export(
    model: Module | ExportedProgram, args: tuple[Any, ...] = (), f: str | os.PathLike[str] | None = None, *,
    kwargs: dict[str, Any] | None = None, verbose: bool | None = None, input_names: list[str] | None = None,
    output_names: list[str] | None = None, opset_version: int | None = None, dynamo: bool = True,
    dynamic_shapes: Any = None, dynamic_axes: Any = None, export_params: bool = True, **options: Any,
) -> ONNXProgram:  # fmt: skip
    """The model in ONNX; with ``f`` it is written there, too.

    Raises:
        TorchExportError: the model asks a tensor for its elements.
        ConversionError: an op has no translation.
        NotImplementedError: ``dynamo=False`` asks for the exporter that goes by way of TorchScript.
    """
    if not dynamo:
        raise refusal("torch.onnx", "export(dynamo=False)")
    if isinstance(model, ExportedProgram):
        program = model
    else:
        given = args if isinstance(args, tuple) else (args,)
        try:
            program = exporting.export(model, given, kwargs, dynamic_shapes=dynamic_shapes)
        except GuardOnDataDependentSymNode as error:
            raise TorchExportError(f"Failed to export the model with torch.export.\n\n{error}") from error
    made = ONNXProgram(_translated(program, opset_version or OPSET), program)
    _rename(made.model, input_names, output_names)
    if f is not None:
        made.save(f)
    return made


def _translated(program: ExportedProgram, opset: int) -> Model:
    builder = Builder()
    _inputs(builder, program)
    for node in program.graph.nodes:
        builder.current = node
        if node.op == "output":
            builder.graph.outputs = [_described(builder.values[n.name], example(n)) for n in node.args[0]]
        elif node.op == "call_function":
            builder.values[node.name] = _node(builder, node)
    _prune(builder)
    return Model(builder.graph, opset, producer_version=__version__)


def _inputs(builder: Builder, program: ExportedProgram) -> None:
    """Inputs of the model, and the tensors that it holds."""
    dynamic = {guard.name: guard.dynamic for guard in program.guards}
    for spec in program.graph_signature.input_specs:
        if spec.kind is InputKind.USER_INPUT:
            node = next(n for n in program.graph.nodes if n.name == spec.arg)
            value = _described(Value(spec.arg), example(node))
            named = dynamic.get(spec.arg, {})
            value.shape = tuple(getattr(named[d], "__name__", f"{spec.arg}_dim_{d}") if d in named else size
                                for d, size in enumerate(value.shape))  # fmt: skip
            builder.graph.inputs.append(value)
        else:
            constant = spec.kind is InputKind.CONSTANT_TENSOR
            tensor = program.constants[str(spec.target)] if constant else _look_up(program.root, str(spec.target))
            value = _described(Value(str(spec.target)), tensor)
            builder.graph.initializers[value.name] = tensor
        builder.values[spec.arg] = value


def _described(value: Value, tensor: Tensor) -> Value:
    return Value(value.name, dtype_name(tensor), tuple(tensor.shape)) if not value.dtype else value


def _node(builder: Builder, node: Any) -> Any:
    if getattr(node.target, "__module__", "") == "_operator":  # one of several results
        source, place = node.args
        return builder.values[source.name][place]
    name = node.target._opname
    translate = OPS.get(name)
    if translate is None:
        raise ConversionError(
            f"No ONNX function found for {node.target!r}: torch.onnx.export has no translation for it"
        )
    return translate(builder, *node.args, **node.kwargs)


def _prune(builder: Builder) -> None:
    """Take away what nobody reads, from the end on."""
    graph = builder.graph
    wanted = {value.name for value in graph.outputs}
    kept = []
    for node in reversed(graph.nodes):
        if any(value.name in wanted for value in node.outputs):
            wanted |= {value.name for value in node.inputs if value is not None}
            kept.append(node)
    graph.nodes = kept[::-1]
    graph.initializers = {name: tensor for name, tensor in graph.initializers.items() if name in wanted}


def _rename(model: Model, inputs: list[str] | None, outputs: list[str] | None) -> None:
    """Call inputs and outputs as the caller wants."""
    graph = model.graph
    renamed = {
        value.name: name
        for values, names in ((graph.inputs, inputs), (graph.outputs, outputs))
        for value, name in zip(values, names or (), strict=False)
    }
    every = [*graph.inputs, *graph.outputs, *(v for n in graph.nodes for v in (*n.inputs, *n.outputs) if v is not None)]
    for value in {id(v): v for v in every}.values():
        value.name = renamed.get(value.name, value.name)


def is_in_onnx_export() -> bool:
    """Always False."""
    return False


__getattr__ = missing_from("torch.onnx", __name__)
__all__ = ["ConversionError", "ONNXProgram", "OnnxExporterError", "TorchExportError", "export", "is_in_onnx_export"]
