"""An LSTM layer in one direction as one op, as oneDNN computes it for float32 on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import float32, float64, uint8
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, dense, fresh

LSTM_MODE = 2


def _sigmoid(a: Array) -> Array:
    return 1 / (1 + np.exp(-a))


def _steps(input: Array, weights: Sequence[Array], hx: Array, cx: Array, reverse: bool) -> tuple[Array, ...]:
    """Outputs (time, batch, hidden), the last states, and gates and cells of every step."""
    w_ih, w_hh, b_ih, b_hh = weights
    parts = np.matmul(input, w_ih.T) + b_ih
    outputs = np.empty((*input.shape[:2], hx.shape[-1]), input.dtype)
    gates, cells = np.empty((*input.shape[:2], 4, hx.shape[-1]), input.dtype), np.empty_like(outputs)
    h, c = hx, cx
    for t in range(len(input))[:: -1 if reverse else 1]:
        raw = (parts[t] + (h @ w_hh.T + b_hh)).reshape((-1, 4, hx.shape[-1]))
        gates[t] = _sigmoid(raw)
        gates[t, :, 2] = np.tanh(raw[:, 2])
        c = gates[t, :, 1] * c + gates[t, :, 0] * gates[t, :, 2]
        h = gates[t, :, 3] * np.tanh(c)
        cells[t], outputs[t] = c, h
    return outputs, h, c, gates, cells


def _made(array: Array) -> Tensor:
    return fresh(dense(np.array(array, np.float32)), float32)


def _run(
    input: Tensor,
    weight0: Tensor,
    weight1: Tensor,
    weight2: Tensor,
    weight3: Tensor,
    hx_: Tensor,
    cx_: Tensor,
    reverse: bool,
    batch_sizes: Sequence[int],
    mode: int,
    hidden_size: int,
    num_layers: int,
    has_biases: bool,
    bidirectional: bool,
    batch_first: bool,
    train: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    weights = [resolved(w) for w in (weight0, weight1, weight2, weight3)]
    outputs, h, c, _, _ = _steps(resolved(input), weights, resolved(hx_), resolved(cx_), reverse)
    return _made(outputs), _made(h), _made(c), fresh(np.zeros(0, np.uint8), uint8)


def _back(
    input: Tensor,
    weights: Sequence[Tensor],
    hx: Tensor,
    cx: Tensor,
    grads: Sequence[Tensor | None],
    reverse: bool,
) -> tuple[Tensor, ...]:
    x, start, cell = resolved(input), resolved(hx), resolved(cx)
    arrays = [resolved(w) for w in weights]
    outputs, _, _, gates, cells = _steps(x, arrays, start, cell, reverse)
    by_output, by_h, by_c = (None if g is None else resolved(g) for g in grads)
    dh = np.zeros_like(start) if by_h is None else by_h
    dc = np.zeros_like(cell) if by_c is None else by_c
    slopes = np.empty((*x.shape[:2], 4 * start.shape[-1]), x.dtype)
    previous = np.empty_like(outputs)
    order = list(range(len(x))[:: -1 if reverse else 1])
    for place in reversed(range(len(order))):
        t = order[place]
        before_h, before_c = (outputs[order[place - 1]], cells[order[place - 1]]) if place else (start, cell)
        previous[t] = before_h
        i, f, g, o = (gates[t, :, k] for k in range(4))
        dh = dh if by_output is None else dh + by_output[t]
        wave = np.tanh(cells[t])
        dc = dc + dh * o * (1 - wave * wave)
        parts = (dc * g * i * (1 - i), dc * before_c * f * (1 - f), dc * i * (1 - g * g), dh * wave * o * (1 - o))
        slopes[t] = np.concatenate(parts, -1)
        dh, dc = slopes[t] @ arrays[1], dc * f
    flat = slopes.reshape((-1, slopes.shape[-1]))
    bias = flat.sum(0)
    found = (
        np.matmul(slopes, arrays[0]),
        flat.T @ x.reshape((-1, x.shape[-1])),
        flat.T @ previous.reshape((-1, previous.shape[-1])),
        bias,
        bias,
        dh,
        dc,
    )
    return tuple(_made(a) for a in found)


def _gradient(
    grads: Sequence[Tensor | None],
    needs: Sequence[bool],
    input: Tensor,
    weight0: Tensor,
    weight1: Tensor,
    weight2: Tensor,
    weight3: Tensor,
    hx_: Tensor,
    cx_: Tensor,
    reverse: bool,
    batch_sizes: Sequence[int],
    mode: int,
    hidden_size: int,
    num_layers: int,
    has_biases: bool,
    bidirectional: bool,
    batch_first: bool,
    train: bool,
    result0: Tensor,
    result1: Tensor,
    result2: Tensor,
    result3: Tensor,
) -> Any:
    found = _back(input, (weight0, weight1, weight2, weight3), hx_, cx_, (*grads, None, None, None)[:3], reverse)
    return tuple(part if need else None for part, need in zip(found, needs, strict=True))


layer = define(
    "mkldnn_rnn_layer(Tensor input, Tensor weight0, Tensor weight1, Tensor weight2, Tensor weight3, Tensor hx_, "
    "Tensor cx_, bool reverse, int[] batch_sizes, int mode, int hidden_size, int num_layers, bool has_biases, "
    "bool bidirectional, bool batch_first, bool train) -> (Tensor, Tensor, Tensor, Tensor)",
    doc="One LSTM layer in one direction: outputs, last hidden state, last cell state, workspace.",
    run=_run,
    grads={"input,weight0,weight1,weight2,weight3,hx_,cx_": _gradient},
    differentiable_outputs=(0, 1, 2),
    method=False,
)


def fused_lstm(input: Tensor, hidden: Any, weights: Any, reverse: bool, how: Any, batch_first: bool) -> Any:
    """Run the op; returns the outputs and the pair of last states."""
    size = hidden[0].shape[-1]
    blank = None if how.has_biases else op_call("zeros")((weights.ih.shape[0],))
    biases = (weights.bias_ih, weights.bias_hh) if how.has_biases else (blank, blank)
    if any(state.dtype is float64 for state in hidden):
        raise RuntimeError("get_mkldnn_dtype: unsupported data type")
    output, hy, cy, _ = layer.call(
        input, weights.ih, weights.hh, *biases, hidden[0], hidden[1], reverse, (), LSTM_MODE, size, 1, how.has_biases,
        how.bidirectional, batch_first, how.train,
    )  # fmt: skip
    return output, (hy, cy)
