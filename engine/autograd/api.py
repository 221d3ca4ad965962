"""What users call to differentiate: ``backward`` and ``torch.autograd.grad``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from stridescope.engine.autograd.backward import execute
from stridescope.engine.autograd.blank import ones, ones_like, zeros, zeros_like
from stridescope.engine.autograd.edges import gradient_edge
from stridescope.engine.autograd.leaf import retain_grad
from stridescope.engine.autograd.lockstep import Lockstep, run_of
from stridescope.engine.autograd.modes import grad_mode, transforms
from stridescope.engine.autograd.node import Edge, Node
from stridescope.engine.layout import preserve_format
from stridescope.engine.tensor import Size, Tensor
from stridescope.engine.warn import internal, warn, warn_once


class GradientEdge(NamedTuple):
    """A place in the graph where a gradient can be asked for: output ``output_nr`` of ``node``."""

    node: Node
    output_nr: int
    ownership_token: Any = None  # keeps alive what the node itself holds weakly


Targets = Tensor | GradientEdge


def many(value: Any) -> tuple[Any, ...]:
    """One tensor or edge, or a sequence of them, as a tuple."""
    return (value,) if isinstance(value, (Tensor, GradientEdge)) else tuple(value)


def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Compute the gradients of ``self`` with respect to the leaves and add them to their ``.grad``."""
    backward_many(self, gradient, retain_graph, create_graph, inputs=inputs)


def backward_many(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """``torch.autograd.backward``: the sum of gradients of ``tensors``, added to the leaves' ``.grad``.

    Args:
        tensors: what to differentiate; scalars, unless ``grad_tensors`` gives a gradient for each.
        grad_tensors: the gradient each of them starts with.
        retain_graph: keep what the graph saved, for another pass; by default the value of ``create_graph``.
        create_graph: record the pass itself, for higher derivatives.
        grad_variables: the old name of ``grad_tensors``.
        inputs: only these get their gradient.

    Raises:
        RuntimeError: an element does not require grad, or a gradient does not fit.
    """
    if transforms:
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use functorch.grad or "
            "functorch.vjp instead or call backward() outside of functorch transforms."
        )
    if grad_variables is not None:
        grad_tensors = _old_name(grad_tensors, grad_variables)
    targets = None if inputs is None else many(inputs)
    if targets is not None and not targets:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    outputs = many(tensors)
    gradients = make_grads(outputs, _per_output(grad_tensors, len(outputs)), False)
    roots = _roots(outputs, gradients)
    if create_graph:
        _warn_of_cycle()
    edges = None if targets is None else [_accumulating(target) for target in targets]
    execute(
        roots,
        gradients,
        keep_graph=create_graph if retain_graph is None else retain_graph,
        create_graph=create_graph,
        inputs=edges,
        accumulate_into_inputs=edges is not None,
    )


def _old_name(grad_tensors: Any, grad_variables: Any) -> Any:
    warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning)
    if grad_tensors is not None:
        raise RuntimeError(
            "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use "
            "`grad_tensors`."
        )
    return grad_variables


def _accumulating(target: Targets) -> Edge:
    """The edge of an input that a pass accumulates into; a non-leaf starts to keep its ``.grad``."""
    if isinstance(target, GradientEdge):
        return target.node, target.output_nr
    if not isinstance(target, Tensor):
        raise _not_an_input(target)
    retain_grad(target)
    return gradient_edge(target)


def _warn_of_cycle() -> None:
    warn_once(
        internal(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid "
            "this. If you have to use this function, make sure to reset the .grad fields of your parameters to None "
            "after use to break the cycle and avoid the leak.",
            "torch/csrc/autograd/engine.cpp:1307",
        )
    )


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """``torch.autograd.grad``: the sum of gradients of ``outputs`` with respect to ``inputs``, returned.

    Args:
        outputs: what to differentiate.
        inputs: tensors or gradient edges; a dict gives a dict.
        grad_outputs: the gradient each output starts with; needed where one is no scalar.
        retain_graph: keep what the graph saved, for another pass; by default the value of ``create_graph``.
        create_graph: record the pass itself, for higher derivatives.
        only_inputs: accepted and ignored, as in PyTorch.
        allow_unused: give None, not an error, for an input that the outputs do not depend on.
        is_grads_batched: the first dim of every ``grad_outputs`` counts vectors, each of which is carried back.
        materialize_grads: give zeros in place of None.

    Raises:
        RuntimeError: an output needs a gradient to start with, or an input was not used.
        ValueError: ``materialize_grads`` together with ``allow_unused=False``.
    """
    if Lockstep.levels and (level := run_of((outputs, inputs, grad_outputs))) is not None:
        options = (create_graph, only_inputs, allow_unused, is_grads_batched, materialize_grads)
        return level.lifted(lambda to, by, start: grad(to, by, start, True, *options), outputs, inputs, grad_outputs)
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    targets = _inputs(inputs)
    if not only_inputs:
        warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
        )
    made = many(outputs)
    gradients = make_grads(made, _per_output(grad_outputs, len(made)), is_grads_batched)
    unused = materialize_grads if allow_unused is None else allow_unused
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        result = _batched(made, gradients, targets, keep, create_graph, unused)
    else:
        result = _gradients(made, gradients, targets, keep, create_graph, unused)
    if materialize_grads:
        result = _materialized(result, targets, create_graph)
    return dict(zip(inputs, result, strict=True)) if type(inputs) is dict else result


def _inputs(inputs: Any) -> tuple[Targets, ...]:
    if isinstance(inputs, Mapping):
        if type(inputs) is not dict:
            raise TypeError(
                f"`inputs` argument to `grad()` must be a dict, not {type(inputs).__name__}. Other Mapping types are "
                "not supported."
            )
        inputs = inputs.values()
    targets = many(inputs)
    if not targets:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    return targets


def _gradients(
    outputs: Sequence[Targets],
    gradients: Sequence[Tensor | None],
    inputs: Sequence[Targets],
    keep_graph: bool,
    create_graph: bool,
    allow_unused: bool,
) -> tuple[Tensor | None, ...]:
    roots = _roots(outputs, gradients)
    edges = [_captured(target) for target in inputs]
    found = execute(roots, gradients, keep_graph=keep_graph, create_graph=create_graph, inputs=edges)
    if not allow_unused:
        for position, gradient in enumerate(found):
            if gradient is None:
                raise RuntimeError(
                    f"The differentiated Tensor at index {position} appears to not have been used in the graph. Set "
                    "allow_unused=True if this is the desired behavior."
                )
    return tuple(found)


def _captured(target: Targets) -> Edge:
    if isinstance(target, GradientEdge):
        return target.node, target.output_nr
    if not isinstance(target, Tensor):
        raise _not_an_input(target)
    if not target._requires_grad:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return gradient_edge(target)


def _not_an_input(target: Any) -> RuntimeError:
    return RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(target).__name__}")


def _batched(
    outputs: Sequence[Targets],
    gradients: Sequence[Tensor | None],
    inputs: Sequence[Targets],
    keep_graph: bool,
    create_graph: bool,
    allow_unused: bool,
) -> tuple[Tensor | None, ...]:
    """Carry each vector of the batch back by itself, and stack what arrives."""
    size = next(g._array.shape[0] for g in gradients if g is not None)
    runs = []
    for index in range(size):
        vectors = [None if g is None else g.select(0, index) for g in gradients]
        keep = keep_graph or index < size - 1
        runs.append(_gradients(outputs, vectors, inputs, keep, create_graph, allow_unused))
    return tuple(None if column[0] is None else _stacked(column) for column in zip(*runs, strict=True))


def _stacked(tensors: Sequence[Any]) -> Tensor:
    whole = zeros((len(tensors), *tensors[0].shape), tensors[0])
    for index, tensor in enumerate(tensors):
        whole.select(0, index).copy_(tensor)
    return whole


def _materialized(
    result: Sequence[Tensor | None], inputs: Sequence[Targets], create_graph: bool
) -> tuple[Tensor | None, ...]:
    zeros: list[Tensor | None] = []
    for gradient, target in zip(result, inputs, strict=True):
        if gradient is None:
            if not isinstance(target, Tensor):
                raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
            gradient = zeros_like(target)
            gradient._requires_grad = create_graph
        zeros.append(gradient)
    return tuple(zeros)


# ---- what a pass starts with ----------------------------------------------------------------------------------------


def _per_output(gradients: Any, count: int) -> tuple[Any, ...]:
    if gradients is None:
        return (None,) * count
    return (gradients,) if isinstance(gradients, Tensor) else tuple(gradients)


def make_grads(outputs: Sequence[Any], gradients: Sequence[Any], batched: bool) -> tuple[Tensor | None, ...]:
    """The gradients to start with: checked where given, 1 for scalars where not."""
    return tuple(
        _start(output, gradient, position, batched)
        for position, (output, gradient) in enumerate(zip(outputs, gradients, strict=False))
    )


def _start(output: Targets, gradient: Any, position: int, batched: bool) -> Tensor | None:
    if gradient is None:
        return _implicit(output)
    if not isinstance(gradient, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(gradient).__name__}")
    sizes, kind = _looks(output)
    shape = gradient._array.shape[1:] if batched else gradient._array.shape
    if shape != sizes:
        raise RuntimeError(_mismatch(position, Size(gradient._array.shape[1:] if batched else shape), sizes, batched))
    if gradient.dtype.is_complex != kind.is_complex:
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{position}] has a dtype of {gradient.dtype} and output[{position}] has a dtype of {kind}."
        )
    return gradient


def _looks(output: Targets) -> tuple[tuple[int, ...], Any]:
    if isinstance(output, GradientEdge):
        meta = output.node._outputs[output.output_nr]
        assert meta is not None
        return meta.sizes, meta.dtype
    return output._array.shape, output.dtype


def _mismatch(position: int, given: Size, sizes: tuple[int, ...], batched: bool) -> str:
    if batched:
        return (
            "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. "
            "The sizes of the remaining dimensions are expected to match the shape of corresponding output, but a "
            f"mismatch was detected: grad_output[{position}] has a shape of {given} and output[{position}] has a shape "
            f"of {Size(sizes)}. If you only want some tensors in `grad_output` to be considered batched, consider "
            "using vmap."
        )
    return (
        f"Mismatch in shape: grad_output[{position}] has a shape of {given} and output[{position}] has a shape of "
        f"{Size(sizes)}."
    )


def _implicit(output: Targets) -> Tensor | None:
    if not isinstance(output, (Tensor, GradientEdge)):
        raise AssertionError("Expected output to be a torch.Tensor")
    if isinstance(output, Tensor) and not output._requires_grad:
        return None
    sizes, kind = _looks(output)
    if math.prod(sizes) != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if not kind.is_floating_point:
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {kind}")
    if isinstance(output, Tensor):
        return _ones_like(output)
    return ones(sizes, output.node._outputs[output.output_nr])


def _ones_like(output: Tensor) -> Tensor:
    if grad_mode.shown is None:
        return ones_like(output)
    options = {"pin_memory": False, "memory_format": preserve_format}
    made: Tensor = grad_mode.shown.call("ones_like", (output,), options, lambda: ones_like(output))
    return made


def _roots(outputs: Sequence[Targets], gradients: Sequence[Tensor | None]) -> list[Edge]:
    """The edges where a pass starts; raises RuntimeError when one does not lead anywhere."""
    if len(outputs) != len(gradients):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(gradients)} gradients")
    roots: list[Edge] = []
    for position, output in enumerate(outputs):
        if isinstance(output, GradientEdge):
            edge: Edge = (output.node, output.output_nr)
        elif isinstance(output, Tensor):
            edge = gradient_edge(output)
        else:
            raise TypeError(f"element {position} of tensors tuple is neither a Tensor nor a GradientEdge")
        if edge[0] is None:
            raise RuntimeError(f"element {position} of tensors does not require grad and does not have a grad_fn")
        roots.append(edge)
    return roots
