"""``torch.autograd.functional``: Jacobians, Hessians and their products with vectors, of functions of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stridescope.engine.autograd import api
from stridescope.engine.autograd.blank import ones_like, zeros, zeros_like
from stridescope.engine.autograd.modes import enable_grad
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.autograd import forward_ad

Tensors = tuple[Tensor, ...]
Function = Callable[..., Any]


def _as_tuple(value: Any, argument: str, function: str) -> tuple[bool, Tensors]:
    """Whether ``value`` was a tuple, and the tuple; raises TypeError for anything but tensors."""
    several = isinstance(value, tuple)
    items = value if several else (value,)
    for position, item in enumerate(items):
        if not isinstance(item, Tensor):
            where = f"value at index {position}" if several else f"given {argument}"
            raise TypeError(
                f"The {argument} given to {function} must be either a Tensor or a tuple of Tensors but the {where} has "
                f"type {type(item)}."
            )
    return several, tuple(items)


def _prepared(inputs: Tensors, create_graph: bool, need_graph: bool) -> Tensors:
    """Inputs to differentiate by: aliases in the graph under create_graph, else fresh leaves."""
    return tuple(
        one.view_as(one) if create_graph and one._requires_grad else one.detach().requires_grad_(need_graph)
        for one in inputs
    )


def _finished(results: Any, create_graph: bool) -> Any:
    if create_graph:
        return results
    if isinstance(results, Tensor):
        return results.detach()
    return tuple(_finished(one, create_graph) for one in results)


def _checked_vector(v: Any, others: Tensors, several: bool, name: str) -> Tensors:
    _, vectors = _as_tuple(v, "v", name)
    if len(vectors) != len(others):
        if several:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(others)} but got {len(vectors)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for position, (vector, other) in enumerate(zip(vectors, others, strict=True)):
        if vector.shape != other.shape:
            entry = f"Entry {position} in " if several else ""
            raise RuntimeError(f"{entry}v has invalid size: should be {other.shape} but got {vector.shape}.")
    return vectors


def _gradients(outputs: Tensors, inputs: Tensors, vectors: Any = None, create_graph: bool = False) -> Any:
    """``autograd.grad`` that leaves out outputs without history."""
    given = vectors or (None,) * len(outputs)
    kept = [(out, v) for out, v in zip(outputs, given, strict=True) if out is not None and out._requires_grad]
    if not kept:
        return (None,) * len(inputs)
    outs, starts = zip(*kept, strict=True)
    return api.grad(outs, inputs, starts, allow_unused=True, create_graph=create_graph, retain_graph=create_graph)


def _filled(gradients: Any, like: Tensors, strict: bool, create_graph: bool, messages: tuple[str, str]) -> Tensors:
    """Zeros for gradients that did not arrive; an error in strict mode."""
    filled = []
    for position, (gradient, one) in enumerate(zip(gradients, like, strict=True)):
        if gradient is None:
            if strict:
                raise RuntimeError(messages[0].format(i=position))
            gradient = zeros_like(one)
        elif strict and create_graph and not gradient._requires_grad:
            raise RuntimeError(messages[1].format(i=position))
        filled.append(gradient)
    return tuple(filled)


_BACK = (
    "The output of the user-provided function is independent of input {i}. This is not allowed in strict mode.",
    "The jacobian of the user-provided function is independent of input {i}. This is not allowed in strict mode when "
    "create_graph=True.",
)
_TRICK = (
    "The gradient with respect to the input is independent of entry {i} in the grad_outputs when using the double "
    "backward trick to compute forward mode gradients. This is not allowed in strict mode.",
    _BACK[1],
)
_DOUBLE = (
    "The jacobian of the user-provided function is independent of input {i}. This is not allowed in strict mode.",
    "The hessian of the user-provided function is independent of input {i}. This is not allowed in strict mode when "
    "create_graph=True.",
)
_DOUBLE_TRICK = (
    "The hessian of the user-provided function is independent of entry {i} in the grad_jacobian. This is not allowed "
    "in strict mode as it prevents from using the double backward trick to replace forward mode AD.",
    _DOUBLE[1],
)


def _check_outputs(outputs: Tensors, strict: bool) -> None:
    for position, output in enumerate(outputs):
        if strict and not output._requires_grad:
            raise RuntimeError(
                f"Output {position} of the user-provided function does not require gradients. The outputs must be "
                "computed in a differentiable manner from the input when running in strict mode."
            )


def _check_jacobian(found: Any, strict: bool) -> None:
    """In strict mode the first derivatives must depend on the inputs."""
    for position, one in enumerate(found if strict else ()):
        if one is None:
            raise RuntimeError(_BACK[0].format(i=position))
        if not one._requires_grad:
            raise RuntimeError(
                "While computing the hessian, found that the jacobian of the user-provided function with respect to "
                f"input {position} is independent of the input. This is not allowed in strict mode. You should ensure "
                "that your function is twice differentiable and that the jacobian depends on the inputs (this would be "
                "violated by a linear function for example)."
            )


def _called(func: Function, inputs: Tensors, name: str, strict: bool) -> tuple[bool, Tensors]:
    several, outputs = _as_tuple(func(*inputs), "outputs of the user-provided function", name)
    _check_outputs(outputs, strict)
    return several, outputs


def _scalar(func: Function, inputs: Tensors, name: str, strict: bool) -> Tensors:
    """Call a function that must give one scalar."""
    several, outputs = _called(func, inputs, name, strict)
    if several or not isinstance(outputs[0], Tensor):
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
    return outputs


def _one_or_all(results: Tensors, several: bool) -> Any:
    return results if several else results[0]


def _vector_or_none(v: Any, others: Tensors, several: bool, refusal: str, name: str) -> Any:
    if v is not None:
        return _checked_vector(v, others, several, name)
    if len(others) != 1 or others[0].numel() != 1:
        raise RuntimeError(refusal)
    return None


def vjp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The function's outputs, and the product of ``v`` with its Jacobian."""
    with enable_grad():
        several_in, given = _as_tuple(inputs, "inputs", "vjp")
        given = _prepared(given, create_graph, True)
        several_out, outputs = _called(func, given, "vjp", strict)
        refusal = (
            "The vector v can only be None if the user-provided function returns a single Tensor with a single element."
        )
        vectors = _vector_or_none(v, outputs, several_out, refusal, "vjp")
    found = _gradients(outputs, given, vectors, create_graph)
    products = _filled(found, given, strict, create_graph, _BACK)
    return _finished(_one_or_all(outputs, several_out), create_graph), _finished(
        _one_or_all(products, several_in), create_graph
    )


def _pushed(func: Function, given: Tensors, vectors: Tensors, name: str, strict: bool, create_graph: bool) -> Any:
    """The double backward trick: the gradient of a vjp with respect to its vector is the jvp."""
    several, outputs = _called(func, given, name, strict)
    starts = tuple(zeros_like(out).requires_grad_() for out in outputs)
    first = _gradients(outputs, given, starts, True)
    first = _filled(first, given, strict, False, _BACK)
    pushed = _gradients(first, starts, vectors, create_graph)
    return several, outputs, _filled(pushed, outputs, strict, create_graph, _TRICK)


def jvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The function's outputs, and the product of its Jacobian with ``v``."""
    with enable_grad():
        several_in, given = _as_tuple(inputs, "inputs", "jvp")
        given = _prepared(given, create_graph, True)
        refusal = (
            "The vector v can only be None if the input to the user-provided function is a single Tensor with a single "
            "element."
        )
        vectors = _vector_or_none(v, given, several_in, refusal, "jvp") or (ones_like(given[0]),)
        several, outputs, products = _pushed(func, given, vectors, "jvp", strict, create_graph)
    return _finished(_one_or_all(outputs, several), create_graph), _finished(
        _one_or_all(products, several), create_graph
    )


def jacobian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian: for each output and input a tensor of the output's sizes followed by the input's.

    ``vectorize`` and the forward strategy give the same numbers; here they are computed in the same way.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
            'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        return _forward_jacobian(func, inputs, create_graph, strict, vectorize)
    with enable_grad():
        several_in, given = _as_tuple(inputs, "inputs", "jacobian")
        given = _prepared(given, create_graph, True)
        several_out, outputs = _called(func, given, "jacobian", strict)
        if strict and vectorize:
            raise RuntimeError(
                "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
                "Please either set `strict=False` or `vectorize=False`."
            )
        rows = tuple(_rows(output, given, strict, create_graph, place) for place, output in enumerate(outputs))
    result = tuple(_one_or_all(row, several_in) for row in rows)
    return _finished(_one_or_all(result, several_out), create_graph)


def _forward_jacobian(func: Function, inputs: Any, create_graph: bool, strict: bool, vectorize: bool) -> Any:
    """The Jacobian column by column, one for each element of the inputs."""
    _check_forward(create_graph, strict, vectorize)
    several_in, given = _as_tuple(inputs, "inputs", "jacobian")
    several_out, outputs = _as_tuple(func(*given), "outputs of the user-provided function", "jacobian")
    columns = [_stack(column) for column in zip(*_tangents(func, given), strict=True)]
    counts = [one.numel() for one in given]
    result = [
        [part.movedim(0, -1).reshape((*output.shape, *one.shape))
         for part, one in zip(column.split(counts), given, strict=True)]
        for column, output in zip(columns, outputs, strict=True)
    ]  # fmt: skip
    rows = [row if several_in else row[0] for row in result]
    return rows if several_out else rows[0]


def _check_forward(create_graph: bool, strict: bool, vectorize: bool) -> None:
    name, refused = "torch.autograd.functional.jacobian", '`strategy="forward-mode"` are not supported together (yet). '
    if create_graph:
        raise NotImplementedError(
            f"{name}: `create_graph=True` and {refused}Please either set `create_graph=False` or "
            '`strategy="reverse-mode"`.'
        )
    if strict:
        raise RuntimeError(
            f'{name}: `strict=True` and {refused}Please either set `strict=False` or `strategy="reverse-mode"`.'
        )
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for "
            "`vectorize=True`."
        )


def _tangents(func: Function, given: Tensors) -> list[Tensors]:
    """What each element of the inputs, moved alone, does to the outputs."""
    found = []
    for place, one in enumerate(given):
        for element in range(one.numel()):
            vectors = [zeros(each.shape, each) for each in given]
            vectors[place].view(-1)[element] = 1
            found.append(_tangent(func, given, vectors))
    return found


def _tangent(func: Function, given: Tensors, vectors: Sequence[Tensor]) -> Tensors:
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(one.detach(), vector) for one, vector in zip(given, vectors, strict=True)]
        _, outputs = _as_tuple(func(*duals), "outputs of the user-provided function", "jacobian")
        parts = [forward_ad.unpack_dual(output) for output in outputs]
    return tuple(zeros_like(part.primal) if part.tangent is None else part.tangent for part in parts)


def _rows(output: Tensor, given: Tensors, strict: bool, create_graph: bool, place: int) -> Tensors:
    """The Jacobian of one output, which is number ``place``, by input."""
    messages = (
        f"Output {place} of the user-provided function is independent of input {{i}}. This is not allowed in strict "
        "mode.",
        _BACK[1],
    )
    flat = output.reshape(-1)
    found: list[list[Tensor]] = [[] for _ in given]
    for position in range(flat.numel()):
        gradients: Any = (None,) * len(given)
        if output._requires_grad:
            gradients = api.grad(flat[position], given, retain_graph=True, create_graph=create_graph, allow_unused=True)
        for column, gradient in zip(found, _filled(gradients, given, strict, create_graph, messages), strict=True):
            column.append(gradient)
    sizes = tuple(output.shape)
    return tuple(_stack(column).view((*sizes, *one.shape)) for column, one in zip(found, given, strict=True))


def _stack(tensors: Sequence[Tensor]) -> Any:
    """Tensors of one shape along a new first dim."""
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    return _join([one.unsqueeze(0) for one in tensors])


def _join(tensors: Sequence[Tensor]) -> Any:
    from stridescope.engine.ops import FUNCTIONS

    return FUNCTIONS["torch"]["cat"](tensors, 0)


def hessian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a function that gives one scalar."""
    several, given = _as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    forward = outer_jacobian_strategy == "forward-mode"

    def gradient(*points: Tensor) -> Tensors:
        if forward:
            points = tuple(one if one._requires_grad else forward_ad.detached(one).requires_grad_() for one in points)
        jac = jacobian(lambda *xs: _scalar(func, xs, "hessian", strict)[0].squeeze(), points, create_graph=True)
        _check_jacobian(jac, strict)
        return tuple(jac)

    result = jacobian(
        gradient,
        given,
        create_graph=create_graph,
        strict=strict,
        vectorize=vectorize,
        strategy=outer_jacobian_strategy,
    )
    return result if several else result[0][0]


def vhp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The function's value, and the product of ``v`` with its Hessian."""
    with enable_grad():
        several, given = _as_tuple(inputs, "inputs", "vhp")
        given = _prepared(given, create_graph, True)
        vectors = _vector_or_none(v, given, several, _NO_VECTOR, "vhp")
        outputs = _scalar(func, given, "vhp", strict)
        found = _gradients(outputs, given, None, True)
        _check_jacobian(found, strict)
        first = _filled(found, given, strict, False, _BACK)
        found = _gradients(first, given, vectors, create_graph)
        products = _filled(found, given, strict, create_graph, _DOUBLE)
    return _finished(outputs[0], create_graph), _finished(_one_or_all(products, several), create_graph)


_NO_VECTOR = (
    "The vector v can only be None if the input to the user-provided function is a single Tensor with a single element."
)


def hvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The function's value, and the product of its Hessian with ``v``."""
    with enable_grad():
        several, given = _as_tuple(inputs, "inputs", "hvp")
        given = _prepared(given, create_graph, True)
        vectors = _vector_or_none(v, given, several, _NO_VECTOR, "hvp") or (ones_like(given[0]),)
        outputs = _scalar(func, given, "hvp", strict)
        found = _gradients(outputs, given, None, True)
        _check_jacobian(found, strict)
        first = _filled(found, given, strict, False, _BACK)
        starts = tuple(zeros_like(one).requires_grad_() for one in given)
        second = _filled(_gradients(first, given, starts, True), given, strict, False, _DOUBLE)
        found = _gradients(second, starts, vectors, create_graph)
        products = _filled(found, given, strict, create_graph, _DOUBLE_TRICK)
    return _finished(outputs[0], create_graph), _finished(_one_or_all(products, several), create_graph)


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
