"""``ctc_loss``: how improbable a target is over all alignments of a longer sequence of predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import INTEGER
from stridescope.engine.kernels import ctc as kernels
from stridescope.engine.ops.from_data import tensor
from stridescope.engine.ops.lookup import where
from stridescope.engine.ops.losses import MEAN, NONE, SUM
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, dense, fresh

_WHERE = "(while checking arguments for ctc_loss_allocate_outputs)"


def _check(logs: Tensor, targets: Tensor, inputs: Sequence[int], labels: Sequence[int], blank: int) -> None:
    if not logs.numel():
        raise RuntimeError("log_probs tensor must not be empty")
    if logs.dim() != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {logs.dim()}-dimensional tensor for argument #1 'log_probs' "
            + _WHERE
        )
    times, batch, classes = logs.shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    for name, lengths in (("input_lengths", inputs), ("target_lengths", labels)):
        if len(lengths) != batch:
            raise RuntimeError(f"{name} must be of size batch_size")
    for length in labels:
        if length < 0:
            raise RuntimeError(f"Expected target_lengths to have value at least 0, but got value {length} {_WHERE}")
    _check_targets(targets, batch, labels)
    for length in inputs:
        if length < 0:
            raise RuntimeError(f"Expected input_lengths to have value at least 0, but got value {length} {_WHERE}")
        if length > times:
            raise RuntimeError(f"Expected input_lengths to have value at most {times}, but got value {length} {_WHERE}")
    if not logs.dtype.is_floating_point or logs.dtype.itemsize < 4:
        raise not_implemented("ctc_loss_cpu", logs.dtype)


def _check_targets(targets: Tensor, batch: int, labels: Sequence[int]) -> None:
    if targets.dim() == 1:
        if targets.shape[0] != sum(labels):
            raise RuntimeError(
                f"Expected tensor to have size {sum(labels)} at dimension 0, but got size {targets.shape[0]} for "
                f"argument #2 'targets' {_WHERE}"
            )
    elif targets.shape[0] != batch:
        raise RuntimeError(
            f"Expected tensor to have size {batch} at dimension 0, but got size {targets.shape[0]} for argument #2 "
            f"'targets' {_WHERE}"
        )
    elif targets.shape[1] < max(labels, default=0):
        raise RuntimeError(
            f"Expected tensor to have size at least {max(labels)} at dimension 1, but got size {targets.shape[1]} for "
            f"argument #2 'targets' {_WHERE}"
        )


def _padded(targets: Tensor, labels: Sequence[int], blank: int, classes: int) -> Array:
    """The targets as [batch, longest]: given so, or one after another."""
    given = resolved(targets)
    padded = np.full((len(labels), max(labels, default=0)), blank, np.int64)
    begin = 0
    for row, length in enumerate(labels):
        padded[row, :length] = given[begin : begin + length] if given.ndim == 1 else given[row, :length]
        begin += length
    bad = (padded < 0) | (padded >= classes)
    if bad.any():
        raise RuntimeError(f"Expected targets to be in [0, {classes - 1}], but got {padded[bad][0]}")
    return padded


def _lengths(*lengths: Sequence[int]) -> list[Array]:
    return [np.asarray(each, np.int64) for each in lengths]


def _run(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Sequence[int],
    target_lengths: Sequence[int],
    blank: int,
    zero_infinity: bool,
) -> tuple[Tensor, Tensor]:
    _check(log_probs, targets, input_lengths, target_lengths, blank)
    logs = resolved(log_probs)
    extended = kernels.states(_padded(targets, target_lengths, blank, logs.shape[2]), blank)
    inputs, labels = _lengths(input_lengths, target_lengths)
    sums = kernels.forward(logs, extended, inputs, blank)
    losses = kernels.likelihoods(sums, inputs, labels)
    return tuple(fresh(dense(made), log_probs.dtype, log_probs.device) for made in (losses, sums))  # type: ignore[return-value]


def _run_backward(
    grad: Tensor,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Sequence[int],
    target_lengths: Sequence[int],
    neg_log_likelihood: Tensor,
    log_alpha: Tensor,
    blank: int,
    zero_infinity: bool,
) -> Tensor:
    logs = resolved(log_probs)
    extended = kernels.states(_padded(targets, target_lengths, blank, logs.shape[2]), blank)
    inputs, labels = _lengths(input_lengths, target_lengths)
    losses, sums = resolved(neg_log_likelihood), resolved(log_alpha)
    result = kernels.gradient(resolved(grad), logs, extended, inputs, labels, losses, sums, blank, zero_infinity)
    return fresh(dense(result), log_probs.dtype, log_probs.device)


_backward = define(
    "_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, "
    "Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor",
    doc="The gradient of ctc_loss: the probabilities, less the share of the alignments that pass each class.",
    run=_run_backward,
    method=False,
    function=False,
)


def _gradient(
    grad: Tensor,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Sequence[int],
    target_lengths: Sequence[int],
    result0: Tensor,
    result1: Tensor,
    blank: int,
    zero_infinity: bool,
) -> Tensor:
    made: Tensor = _backward.call(
        grad, log_probs, targets, input_lengths, target_lengths, result0, result1, blank, zero_infinity
    )
    return made


_alignments = define(
    "_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, "
    "bool zero_infinity=False) -> (Tensor, Tensor)",
    doc="Minus the log probability of each target, and the sums over the beginnings of all alignments.",
    run=_run,
    grads={"log_probs": _gradient},
    node="CtcLossBackward0",
    differentiable_outputs=(0,),
    method=False,
)


def _numbers(lengths: Any, name: str) -> list[int]:
    if not isinstance(lengths, Tensor):
        return [int(length) for length in lengths]
    if lengths.dtype.category != INTEGER:
        raise RuntimeError(f"{name} must be integral")
    flat = lengths.reshape(-1).tolist()
    return [int(length) for length in flat]


def _loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = NONE,
    zero_infinity: bool = False,
) -> Any:
    inputs, labels = _numbers(input_lengths, "input_lengths"), _numbers(target_lengths, "target_lengths")
    single = log_probs.dim() != 3
    if single:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.unsqueeze(0) if targets.dim() == 1 else targets
    losses = _alignments.call(log_probs, targets, inputs, labels, blank, zero_infinity)[0]
    if zero_infinity:
        losses = where(losses.isinf(), losses.new_zeros(()), losses)
    if reduction == MEAN:
        return (losses / tensor(labels).clamp_min(1).to(losses)).mean()
    if reduction == SUM:
        return losses.sum()
    return losses.squeeze(0) if single and reduction == NONE else losses


for _overload, _kind in (("IntList", "int[]"), ("Tensor", "Tensor")):
    define(
        f"ctc_loss.{_overload}(Tensor log_probs, Tensor targets, {_kind} input_lengths, {_kind} target_lengths, "
        "int blank=0, int reduction=0, bool zero_infinity=False) -> Tensor",
        doc="Minus the log probability of targets over all alignments with the predictions.",
        composite=_loss,
        method=False,
    )
