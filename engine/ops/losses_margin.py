"""Losses of margins and rankings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stridescope.engine.autograd.modes import in_cpp
from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import float32, float64, int64, scalar_name
from stridescope.engine.ops.lookup import op_call, where
from stridescope.engine.ops.losses import MEAN, NAMESPACE, reduced, reduced_quietly
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, dense, fresh


def add_scalar(tensor: Tensor, number: float) -> Any:
    """``tensor + number`` as C++ spells it: another node than Python's."""
    return op_call("add.Scalar")(tensor, number)


def _margin_ranking(input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: int) -> Any:
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{list(input1.shape)}, input2: {list(input2.shape)}, target: {list(target.shape)} "
        )
    apart = input1 - input2
    return reduced(add_scalar(-target * apart, margin).clamp_min_(0), reduction)


define(
    "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) -> Tensor",
    doc="How far the wrong input is ahead, beyond a margin.",
    composite=_margin_ranking,
    method=False,
)


def _minus(number: float, tensor: Tensor) -> Any:
    """``number - tensor`` as PyTorch's C++ has it: the number becomes a tensor of the same dtype first."""
    return tensor.new_full((), number) - tensor


@in_cpp
def _hinge(self: Tensor, target: Tensor, margin: float, reduction: int) -> Any:
    zeros = op_call("zeros_like")(self)
    far = _minus(margin, self).clamp_min(0)
    return reduced(where(target != 1, far, zeros) + where(target != -1, self, zeros), reduction)


define(
    "hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=1) -> Tensor",
    doc="The distance of like pairs, and how far unlike ones are inside the margin.",
    composite=_hinge,
    method=False,
)


@in_cpp
def _cosine(input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: int) -> Any:
    dims = target.dim()
    if dims not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if dims == 1 and input1.dim() != 2:
        raise RuntimeError("1D target tensor expects 2D input tensors, but found inputs with sizes "
                           f"{list(input1.shape)} and {list(input2.shape)}.")  # fmt: skip
    if dims == 0 and input1.dim() != 1:
        raise RuntimeError("0D target tensor expects 1D input tensors, but found inputs with sizes "
                           f"{list(input1.shape)} and {list(input2.shape)}.")  # fmt: skip
    eps = 1e-12
    product = (input1 * input2).sum(dims)
    first, second = (input1 * input1).sum(dims) + eps, (input2 * input2).sum(dims) + eps
    cosine = product / (first * second).sqrt_()
    zeros = op_call("zeros_like")(cosine)
    like, unlike = _minus(1, cosine), (cosine - margin).clamp_min_(0)
    return reduced(where(target == 1, like, zeros) + where(target == -1, unlike, zeros), reduction)


define(
    "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) -> Tensor",
    doc="The angle of like pairs, and how close unlike ones are beyond the margin.",
    composite=_cosine,
    method=False,
)


@in_cpp
def _triplet(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float, p: float, eps: float, swap: bool, reduction: int
) -> Any:
    dims = [t.dim() for t in (anchor, positive, negative)]
    if len(set(dims)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {dims[0]}D, positive {dims[1]}D, and negative {dims[2]}D inputs"
        )
    if margin <= 0:
        raise RuntimeError(f"margin must be greater than 0, got {margin:g}")
    distance = op_call("pairwise_distance")
    near, far = distance(anchor, positive, p, eps), distance(anchor, negative, p, eps)
    if swap:
        far = op_call("min.other")(far, distance(positive, negative, p, eps))
    return reduced((margin + near - far).clamp_min(0), reduction)


define(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, "
    "float eps=1e-06, bool swap=False, int reduction=1) -> Tensor",
    doc="How much nearer the positive should be than the negative.",
    composite=_triplet,
    method=False,
)


@in_cpp
def _poisson(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Any:
    if log_input:
        product = target * input  # C++ computes the right operand first
        loss = input.exp() - product
    else:
        loss = input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return reduced(loss, reduction)


define(
    "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor",
    doc="Minus the log likelihood of a Poisson distribution.",
    composite=_poisson,
    method=False,
)

# ---- margins between classes ----------------------------------------------------------------------------------------


def _rows(tensor: Tensor) -> Array:
    array = resolved(tensor)
    return array.reshape((1, -1)) if array.ndim <= 1 else array


def _check_margin(self: Tensor, target: Tensor, name: str) -> None:
    shape = list(self.shape)
    if self.dim() > 2 or (self.dim() == 2 and 0 in shape[1:]) or (self.dim() < 2 and not self.numel()):
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {shape}")
    if name == "multi_margin":
        frames = shape[0] if self.dim() == 2 else 1
        if not (target.dim() <= 1 and target.numel() == frames):
            raise RuntimeError(
                "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
                f"size). Expected target size [{frames}], but got {list(target.shape)}. Input has shape {shape}."
            )


def _need_margin(self: Tensor, target: Tensor, kernel: str) -> None:
    """Refuse what the kernels were not made for."""
    if self.dtype not in (float32, float64):
        raise not_implemented(kernel, self.dtype)
    if target.dtype is not int64:
        raise RuntimeError(f"expected scalar type Long but found {scalar_name(target.dtype)}")


def _multi_parts(self: Tensor, target: Tensor, margin: float, weight: Tensor | None) -> tuple[Array, Array, Array]:
    """The margins that are violated, the weights, and the class numbers, row by row."""
    array, classes = _rows(self), resolved(target).reshape(-1)
    if classes.size and (classes.min() < 0 or classes.max() >= array.shape[1]):
        raise RuntimeError("target out of range")
    own = np.take_along_axis(array, classes[:, None], 1)
    gap = array.dtype.type(margin) - own + array
    np.put_along_axis(gap, classes[:, None], 0, 1)
    counts = np.ones((len(array), 1), array.dtype) if weight is None else resolved(weight)[classes][:, None]
    return np.maximum(gap, 0), counts, classes


def _multi(self: Tensor, target: Tensor, p: Any, margin: Any, weight: Tensor | None, reduction: int) -> Tensor:
    if p not in (1, 2):
        raise RuntimeError("only p == 1 and p == 2 supported")
    _check_margin(self, target, "multi_margin")
    classes = self.shape[-1] if self.dim() else 1
    if weight is not None and (weight.dim() != 1 or weight.numel() != classes):
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    _need_margin(self, target, "multi_margin_loss_cpu_kernel")
    if weight is not None and weight.dtype is not self.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(self.dtype)} but found {scalar_name(weight.dtype)}")
    gap, counts, _ = _multi_parts(self, target, margin, weight)
    losses = (gap**p * counts).sum(1) / gap.shape[1]
    shape = losses.shape if target.dim() or reduction else ()
    made = fresh(dense(losses.astype(self.dtype.np).reshape(shape)), self.dtype, self.device)
    return reduced_quietly(made, reduction)


def _multi_grad(
    grad: Tensor, self: Tensor, target: Tensor, p: Any, margin: Any, weight: Tensor | None, reduction: int
) -> Tensor:
    gap, counts, classes = _multi_parts(self, target, margin, weight)
    slope = (gap > 0) * (1 if p == 1 else 2 * gap) * counts / gap.shape[1]
    np.put_along_axis(slope, classes[:, None], -slope.sum(1, keepdims=True), 1)
    return _scaled(slope, grad, self, reduction)


def _scaled(slope: Array, grad: Tensor, self: Tensor, reduction: int) -> Tensor:
    share = resolved(grad)
    slope = slope / len(slope) * share if reduction == MEAN else slope * share.reshape((-1, 1) if share.ndim else ())
    return fresh(dense(slope.astype(self.dtype.np).reshape(self._array.shape)), self.dtype, self.device)


define(
    "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1) "
    "-> Tensor",
    doc="How far other classes are ahead of the right one, beyond a margin.",
    run=_multi,
    grads={"self": _multi_grad},
    method=False,
    namespace=NAMESPACE,
)


def _label_parts(self: Tensor, target: Tensor) -> tuple[Array, Array, Array]:
    """Which classes are targets, and for each target and other class by how much the margin of 1 is missed."""
    array, labels = _rows(self), _rows(target)
    ended = np.cumsum(labels < 0, 1) > 0
    wanted = np.zeros(array.shape, bool)
    rows, places = np.nonzero(~ended)
    wanted[rows, labels[rows, places]] = True
    gap = np.zeros((len(array), labels.shape[1], array.shape[1]), array.dtype)
    gap[rows, places] = 1 - array[rows, labels[rows, places]][:, None] + array[rows]
    gap = np.maximum(gap, 0) * ~wanted[:, None, :]
    return gap, wanted, np.where(ended, 0, labels)


def _label(self: Tensor, target: Tensor, reduction: int) -> tuple[Tensor, Tensor]:
    _check_margin(self, target, "multilabel")
    if target.shape != self.shape:
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(self.shape)}")
    _need_margin(self, target, "multilabel_margin_loss_forward_out_frame")
    gap, wanted, _ = _label_parts(self, target)
    losses = gap.sum((1, 2)) / gap.shape[2]
    shape = losses.shape if self.dim() == 2 or reduction else ()
    made = fresh(dense(losses.astype(self.dtype.np).reshape(shape)), self.dtype, self.device)
    flags = wanted.reshape(target._array.shape).astype(self.dtype.np)
    return reduced_quietly(made, reduction), fresh(dense(flags), self.dtype, self.device)


def _label_grad(grad: Tensor, self: Tensor, target: Tensor, reduction: int, is_target: Tensor) -> Tensor:
    gap, _, labels = _label_parts(self, target)
    missed = (gap > 0).astype(self.dtype.np) / gap.shape[2]
    slope = missed.sum(1)
    rows = np.broadcast_to(np.arange(len(labels))[:, None], labels.shape)
    np.add.at(slope, (rows, labels), -missed.sum(2))
    return _scaled(slope, grad, self, reduction)


_label_forward = define(
    "multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)",
    doc="How far wrong classes are ahead of the right ones, beyond a margin of 1.",
    run=_label,
    grads={"self": _label_grad},
    node="MultilabelMarginLossBackward0",
    differentiable_outputs=(0,),
    method=False,
    function=False,
)
define(
    "multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
    doc="How far wrong classes are ahead of the right ones, beyond a margin of 1.",
    composite=lambda self, target, reduction: _label_forward.call(self, target, reduction)[0],
    method=False,
    namespace=NAMESPACE,
)
