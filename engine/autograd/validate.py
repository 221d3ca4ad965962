"""Checking what a node returned against what the receivers' forward outputs look like."""

from __future__ import annotations

from stridescope.engine.autograd.node import Edge, Gradients, Node, OutputMeta
from stridescope.engine.tensor import Tensor


def validated(node: Node | None, edges: tuple[Edge, ...], gradients: Gradients) -> Gradients:
    """The gradients, reduced to the receivers' shapes and dtypes; raises RuntimeError when they cannot be.

    ``node`` is None for the gradients that a backward pass starts with.
    """
    if len(gradients) != len(edges):
        raise RuntimeError(f"{_blame(node)}invalid number of gradients - expected {len(edges)}, but got "
                           f"{len(gradients)}")  # fmt: skip
    changed: list[Tensor | None] | None = None
    for position, (receiver, number) in enumerate(edges):
        gradient = gradients[position]
        if receiver is None or gradient is None:
            continue
        meta = receiver._outputs[number]
        if meta is None or (gradient._array.shape == meta.sizes and gradient.dtype is meta.dtype
                            and gradient._device is meta.device):  # fmt: skip
            continue
        changed = changed or list(gradients)
        changed[position] = fitted(node, gradient, meta, position)
    return gradients if changed is None else tuple(changed)


def _blame(node: Node | None) -> str:
    return "" if node is None else f"Function {node.name()} returned an "


def fitted(node: Node | None, gradient: Tensor, meta: OutputMeta, position: int) -> Tensor:
    """The gradient in the receiver's shape, dtype and device; raises RuntimeError when it cannot be."""
    if gradient._array.shape != meta.sizes:
        gradient = _reduced(node, gradient, meta, position)
    if gradient.dtype is not meta.dtype:
        if gradient.dtype.is_complex != meta.dtype.is_complex and not gradient.dtype.is_floating_point:
            raise RuntimeError(
                "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) to be true, but "
                "got false.  (Could this error message be improved?  If so, please report an enhancement request to "
                "PyTorch.)"
            )
        gradient = gradient.to(meta.dtype)
    if gradient.device is not meta.device:
        if gradient._array.ndim:
            raise RuntimeError(
                f"{_blame(node)}invalid gradient at index {position} - expected device {meta.device} but got "
                f"{gradient.device}"
            )
        gradient = gradient.to(meta.device)
    return gradient


def _reduced(node: Node | None, gradient: Tensor, meta: OutputMeta, position: int) -> Tensor:
    sizes = gradient._array.shape
    extra = len(sizes) - len(meta.sizes)
    if extra < 0 or any(n not in (1, m) for n, m in zip(meta.sizes, sizes[extra:], strict=True)):
        raise RuntimeError(f"{_blame(node)}invalid gradient at index {position} - got {list(sizes)} but expected shape "
                           f"compatible with {list(meta.sizes)}")  # fmt: skip
    return gradient.sum_to_size(meta.sizes)  # type: ignore[no-any-return]
