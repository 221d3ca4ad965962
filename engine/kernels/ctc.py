"""Connectionist temporal classification (Graves et al. 2006): the forward and backward sums over alignments, in logs.

A target of L labels is read as 2L + 1 states: blank, label, blank, ..., label, blank. All sequences of a batch are
carried together; shapes are [batch, time, state] for the sums and [time, batch, class] for the log probabilities.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def states(targets: Array, blank: int) -> Array:
    """Each target with blanks between its labels and around them: [batch, 2L + 1]."""
    extended = np.full((targets.shape[0], 2 * targets.shape[1] + 1), blank, np.int64)
    extended[:, 1::2] = targets
    return extended


def _skips(extended: Array, blank: int) -> Array:
    """Where an alignment may come from two states before: at a label that differs from the label before it."""
    allowed = np.zeros(extended.shape, bool)
    allowed[:, 2:] = (extended[:, 2:] != blank) & (extended[:, 2:] != extended[:, :-2])
    return allowed


def _log_sum(*terms: Array) -> Array:
    """The logarithm of a sum of exponentials; all of minus infinity stay minus infinity."""
    highest = np.maximum.reduce(terms)
    base = np.where(np.isneginf(highest), highest.dtype.type(0), highest)
    total = np.zeros_like(base)
    for term in terms:
        total += np.exp(term - base)
    return np.asarray(np.log(total) + base)


def _shifted(row: Array, by: int) -> Array:
    moved = np.full_like(row, -np.inf)
    if by > 0:
        moved[:, by:] = row[:, :-by]
    else:
        moved[:, :by] = row[:, -by:]
    return moved


def forward(logs: Array, extended: Array, input_lengths: Array, blank: int) -> Array:
    """The log probability of all beginnings that end in a state at a time: [batch, time, state]."""
    times, batch, _ = logs.shape
    sums = np.full((batch, times, extended.shape[1]), -np.inf, logs.dtype)
    rows = np.arange(batch)[:, None]
    skips, none = _skips(extended, blank), logs.dtype.type(-np.inf)
    sums[:, 0, :2] = logs[0][rows, extended[:, :2]]
    for time in range(1, times):
        before = sums[:, time - 1]
        arrived = _log_sum(before, _shifted(before, 1), np.where(skips, _shifted(before, 2), none))
        sums[:, time] = arrived + logs[time][rows, extended]
    sums[np.arange(times)[None] >= input_lengths[:, None]] = -np.inf
    return sums


def likelihoods(sums: Array, input_lengths: Array, target_lengths: Array) -> Array:
    """Minus the log probability of each target."""
    rows, last = np.arange(len(sums)), np.maximum(input_lengths - 1, 0)
    blank_end = sums[rows, last, 2 * target_lengths]
    label_end = np.where(target_lengths > 0, sums[rows, last, np.maximum(2 * target_lengths - 1, 0)], -np.inf)
    loss = -_log_sum(blank_end, label_end.astype(sums.dtype))
    empty = np.where(target_lengths == 0, 0, np.inf)
    return np.where(input_lengths == 0, empty, loss).astype(sums.dtype)


def _backward_sums(logs: Array, extended: Array, input_lengths: Array, target_lengths: Array, blank: int) -> Array:
    """The log probability of all endings that begin in a state at a time: [batch, time, state]."""
    times, batch, _ = logs.shape
    sums = np.full((batch, times, extended.shape[1]), -np.inf, logs.dtype)
    rows, at = np.arange(batch)[:, None], np.arange(extended.shape[1])[None]
    inside, none = at <= 2 * target_lengths[:, None], logs.dtype.type(-np.inf)
    skips = np.zeros(extended.shape, bool)
    skips[:, :-2] = _skips(extended, blank)[:, 2:]
    ends = inside & (at >= 2 * target_lengths[:, None] - 1)
    for time in reversed(range(times)):
        own = logs[time][rows, extended]
        if time + 1 < times:
            after = sums[:, time + 1]
            left = _log_sum(after, _shifted(after, -1), np.where(skips, _shifted(after, -2), none))
            sums[:, time] = np.where(inside & (time < input_lengths[:, None] - 1), left + own, none)
        sums[:, time] = np.where(ends & (time == input_lengths[:, None] - 1), own, sums[:, time])
    return sums


def gradient(
    grad: Array,
    logs: Array,
    extended: Array,
    input_lengths: Array,
    target_lengths: Array,
    losses: Array,
    sums: Array,
    blank: int,
    zero_infinity: bool,
) -> Array:
    """The gradient with respect to the log probabilities, taken as a softmax's: [time, batch, class]."""
    times, batch, classes = logs.shape
    both = sums + _backward_sums(logs, extended, input_lengths, target_lengths, blank)
    occupied = np.full((batch, times, classes), -np.inf, logs.dtype)
    rows = np.arange(batch)
    for state in range(extended.shape[1]):
        place = (rows, slice(None), extended[:, state])
        occupied[place] = np.logaddexp(occupied[place], both[:, :, state])
    share = np.exp(occupied.transpose(1, 0, 2) + losses[:, None] - logs)
    result = (np.exp(logs) - share) * grad[:, None]
    outside = np.arange(times)[:, None] >= input_lengths[None]
    result[outside] = 0
    if zero_infinity:
        result[:, np.isinf(losses)] = 0
    return np.asarray(result.astype(logs.dtype))
