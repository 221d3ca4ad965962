"""``ExportedProgram``: a graph of aten ops, what its inputs and outputs are, and the module that runs it."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.fx.graph import Graph
from stridescope.engine.torch.fx.graph_module import GraphModule, _look_up
from stridescope.engine.torch.fx.node import map_aggregate
from stridescope.engine.torch.nn.modules.module import Module

_SHORT = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "b8", "complex64": "c64", "complex128": "c128",
}  # fmt: skip


class InputKind(enum.Enum):
    """What an input of the graph is."""

    USER_INPUT = 1
    PARAMETER = 2
    BUFFER = 3
    CONSTANT_TENSOR = 4


class OutputKind(enum.Enum):
    """What an output of the graph is."""

    USER_OUTPUT = 1


@dataclass
class InputSpec:
    """One input: its kind, the name of its node, and the name that it has in the module."""

    kind: InputKind
    arg: str
    target: str | None = None
    persistent: bool | None = None

    def __str__(self) -> str:
        target = "" if self.target is None else f" target={self.target!r}"
        kept = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg}: {self.kind.name}{target}{kept}"


@dataclass
class OutputSpec:
    """One output: its kind and the name of its node."""

    kind: OutputKind
    arg: str
    target: str | None = None

    def __str__(self) -> str:
        return f"{self.arg}: {self.kind.name}"


@dataclass
class ExportGraphSignature:
    """What the inputs and outputs of the graph are."""

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _inputs(self, kind: InputKind) -> list[InputSpec]:
        return [spec for spec in self.input_specs if spec.kind is kind]

    @property
    def parameters(self) -> tuple[str | None, ...]:
        """The module's parameters that are inputs."""
        return tuple(spec.target for spec in self._inputs(InputKind.PARAMETER))

    @property
    def buffers(self) -> tuple[str | None, ...]:
        """The module's buffers that are inputs."""
        return tuple(spec.target for spec in self._inputs(InputKind.BUFFER))

    @property
    def user_inputs(self) -> tuple[str, ...]:
        """The inputs that the caller gives."""
        return tuple(spec.arg for spec in self._inputs(InputKind.USER_INPUT))

    @property
    def user_outputs(self) -> tuple[str, ...]:
        """The outputs that the caller gets."""
        return tuple(spec.arg for spec in self.output_specs)

    @property
    def inputs_to_parameters(self) -> dict[str, str | None]:
        """By the name of an input: the parameter that it is."""
        return {spec.arg: spec.target for spec in self._inputs(InputKind.PARAMETER)}

    @property
    def inputs_to_buffers(self) -> dict[str, str | None]:
        """By the name of an input: the buffer that it is."""
        return {spec.arg: spec.target for spec in self._inputs(InputKind.BUFFER)}

    def __str__(self) -> str:
        inputs, outputs = "\n".join(map(str, self.input_specs)), "\n".join(map(str, self.output_specs))
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"


ExportGraphSignature.__module__ = "torch.export.graph_signature"


@dataclass
class Guard:
    """What the program takes for granted of an input's sizes."""

    name: str
    sizes: tuple[int, ...]
    dynamic: dict[int, Any] = field(default_factory=dict)

    def check(self, value: Any) -> None:
        """Raise AssertionError where an input has another size."""
        for dim, size in enumerate(self.sizes):
            has = value.size()[dim]
            if dim not in self.dynamic and has != size:
                raise AssertionError(f"Guard failed: {self.name}.size()[{dim}] == {size}")
            low, high = (getattr(self.dynamic.get(dim), end, None) for end in ("min", "max"))
            if low and has < low:
                raise AssertionError(f"Guard failed: {self.name}.size()[{dim}] >= {low}")
            if high is not None and has > high:
                raise AssertionError(f"Guard failed: {self.name}.size()[{dim}] <= {high}")


class ExportedProgram:
    """A module as a graph of ops.

    Attributes:
        graph: the nodes; parameters, buffers and inputs are its placeholders.
        graph_signature: which placeholder is what.
        range_constraints: the bounds of the sizes that may change.
    """

    __module__ = "torch.export.exported_program"

    def __init__(
        self, root: Module, graph: Graph, signature: ExportGraphSignature, constants: dict[str, Tensor],
        guards: list[Guard], form: Callable[[Any], Any], names: list[str],
    ) -> None:  # fmt: skip
        self.graph, self.graph_signature, self.constants = graph, signature, constants
        self.graph_module = GraphModule(Module(), graph)
        self.root, self.guards, self._form, self._names = root, guards, form, names
        self.range_constraints: dict[Any, Any] = {}
        self.dialect, self.verifiers = "TRAINING", ()

    @property
    def state_dict(self) -> dict[str, Any]:
        """The module's parameters and buffers."""
        kept = set(self.root.state_dict())
        buffers = ((name, buffer) for name, buffer in self.root.named_buffers() if name in kept)
        return dict((*self.root.named_parameters(), *buffers))

    def parameters(self) -> Any:
        """The parameters."""
        return self.root.parameters()

    def named_parameters(self) -> Any:
        """The parameters with their names."""
        return self.root.named_parameters()

    def buffers(self) -> Any:
        """The buffers."""
        return self.root.buffers()

    def module(self, check_guards: bool = True) -> ExportedModule:
        """A module that runs the graph; it checks the sizes of its inputs."""
        return ExportedModule(self, check_guards)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Exported programs are run through their module."""
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    def run_decompositions(self, decomp_table: Any = None) -> ExportedProgram:
        """The program itself: its ops are not taken apart here."""
        return self

    def __str__(self) -> str:
        code = _typed(self)
        lines = "\n".join(f"    {line}" if line.strip() else "    " for line in code.split("\n"))
        ranges = "{" + ", ".join(f"{key}: {value}" for key, value in self.range_constraints.items()) + "}"
        signature = "\n".join(f"    {line}" if line else "    " for line in str(self.graph_signature).split("\n"))
        return f"ExportedProgram:\n{lines}\nGraph signature: {signature.lstrip(' ')}\nRange constraints: {ranges}\n"

    __repr__ = __str__


def shown(tensor: Tensor) -> str:
    """The dtype and sizes of a tensor, such as ``f32[2, 3]``."""
    name = str(tensor.dtype).removeprefix("torch.")
    return f"{_SHORT.get(name, name)}[{', '.join(map(str, tensor.shape))}]"


def _typed(program: ExportedProgram) -> str:
    """The graph as the source of a class, with the dtype and sizes of each value."""
    graph = program.graph
    for node in graph.nodes:
        if isinstance(node.meta.get("val"), Tensor):
            node.type = f'"{shown(node.meta["val"])}"'
    text = program.graph_module.print_readable(print_output=False)
    for node in graph.nodes:
        node.type = None
    return text.replace(' : "', ': "')


class ExportedModule(Module):
    """Runs an exported program with the module's parameters."""

    def __init__(self, program: ExportedProgram, check_guards: bool) -> None:
        super().__init__()
        self.__dict__["_program"], self.__dict__["_checks"] = program, check_guards
        for registry in ("_parameters", "_buffers", "_modules"):
            self.__dict__[registry] = program.root.__dict__[registry]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph.

        Raises:
            AssertionError: an input has another size than the program was exported for.
            ValueError: there are more or fewer inputs.
        """
        program: ExportedProgram = self.__dict__["_program"]
        given = dict(zip(program._names, args, strict=False)) | kwargs
        if len(args) + len(kwargs) != len(program._names) or set(given) != set(program._names):
            raise ValueError(
                "Trying to flatten user inputs with exported input tree spec: "
                f"{program._names}\nbut actually got inputs with tree spec of: {len(args)} positional, "
                f"{list(kwargs)}.\nPlease check that the inputs have the same number and type of args and kwargs as "
                "the ones you used when tracing."
            )
        flat = leaves([given[name] for name in program._names])
        if self.__dict__["_checks"]:
            tensors = dict(zip(program.graph_signature.user_inputs, flat, strict=False))
            for guard in program.guards:
                guard.check(tensors[guard.name])
        values = iter(flat)
        inputs = [
            next(values) if spec.kind is InputKind.USER_INPUT else self._own(program, spec)
            for spec in program.graph_signature.input_specs
        ]
        return program._form(program.graph_module(*inputs))

    @property
    def graph(self) -> Graph:
        """The nodes."""
        return self.__dict__["_program"].graph  # type: ignore[no-any-return]

    def _own(self, program: ExportedProgram, spec: InputSpec) -> Any:
        if spec.kind is InputKind.CONSTANT_TENSOR:
            return program.constants[str(spec.target)]
        return _look_up(program.root, str(spec.target))


def leaves(values: Any) -> list[Any]:
    """The values in a structure, in order."""
    found: list[Any] = []
    map_aggregate(values, lambda leaf: found.append(leaf))
    return found
