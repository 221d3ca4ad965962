"""Recurrent layers: tanh and relu RNNs, LSTM and GRU, their cells, and packed sequences.

They are composites of small ops, as PyTorch's CPU runs them, but for an LSTM over float32 without projections: that
runs in oneDNN there, one op a layer and direction (:mod:`stridescope.engine.ops.rnn_fused`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from stridescope.engine.dispatch.op import define
from stridescope.engine.dtype import float32
from stridescope.engine.ops.lookup import concatenated, op_call
from stridescope.engine.ops.rnn_fused import fused_lstm
from stridescope.engine.tensor import Tensor
from stridescope.engine.warn import internal, warn_once

Hidden = Any  # a tensor, or for LSTM a pair of tensors
Step = Callable[..., Hidden]


class Weights(NamedTuple):
    """The parameters of one layer in one direction."""

    ih: Tensor
    hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None
    hr: Tensor | None

    def of_input(self, input: Tensor) -> Any:
        """The input's part of the gates."""
        return op_call("linear")(input, self.ih, self.bias_ih)

    def of_hidden(self, hidden: Tensor) -> Any:
        """The hidden state's part of the gates."""
        return op_call("linear")(hidden, self.hh, self.bias_hh)


# ---- one step: cells take the input's part of the gates -------------------------------------------------------------


def _simple(method: str) -> Step:
    def step(gates: Tensor, hidden: Tensor, weights: Weights) -> Tensor:
        return getattr(weights.of_hidden(hidden).add_(gates), method)()  # type: ignore[no-any-return]

    return step


def lstm_step(gates: Tensor, hidden: tuple[Tensor, Tensor], weights: Weights) -> tuple[Tensor, Tensor]:
    """One step of an LSTM."""
    hx, cx = hidden
    parts = op_call("unsafe_chunk")(weights.of_hidden(hx).add_(gates), 4, 1)
    taken, kept, cell, shown = parts[0].sigmoid_(), parts[1].sigmoid_(), parts[2].tanh_(), parts[3].sigmoid_()
    cy = (kept * cx).add_(taken * cell)
    hy = shown * cy.tanh()
    return (hy if weights.hr is None else op_call("matmul")(hy, weights.hr.t())), cy


def gru_step(gates: Tensor, hidden: Tensor, weights: Weights) -> Tensor:
    """One step of a GRU."""
    of_input = op_call("unsafe_chunk")(gates, 3, 1)
    of_hidden = op_call("unsafe_chunk")(weights.of_hidden(hidden), 3, 1)
    reset = of_hidden[0].add_(of_input[0]).sigmoid_()
    update = of_hidden[1].add_(of_input[1]).sigmoid_()
    new = of_input[2].add(of_hidden[2].mul_(reset)).tanh_()
    return (hidden - new).mul_(update).add_(new)  # type: ignore[no-any-return]


STEPS: dict[str, Step] = {
    "rnn_tanh": _simple("tanh"), "rnn_relu": _simple("relu"), "lstm": lstm_step, "gru": gru_step,
}  # fmt: skip


def _shown(hidden: Hidden) -> Tensor:
    return hidden[0] if isinstance(hidden, tuple) else hidden  # type: ignore[no-any-return]


def _each(hidden: Hidden, function: Callable[[Tensor], Tensor]) -> Hidden:
    return tuple(function(h) for h in hidden) if isinstance(hidden, tuple) else function(hidden)


def _joined(states: Sequence[Hidden]) -> Hidden:
    if isinstance(states[0], tuple):
        return tuple(concatenated(list(part), 0) for part in zip(*states, strict=True))
    return concatenated(list(states), 0)


# ---- one layer in one direction -------------------------------------------------------------------------------------


def _over_steps(step: Step, input: Tensor, hidden: Hidden, weights: Weights, backwards: bool) -> tuple[Any, Hidden]:
    """A layer over (time, batch, features)."""
    gates = list(weights.of_input(input).unbind(0))
    if not gates:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    outputs = []
    for part in reversed(gates) if backwards else gates:
        hidden = step(part, hidden, weights)
        outputs.append(_shown(hidden))
    if backwards:
        outputs.reverse()
    return op_call("stack")(outputs, 0), hidden


def _over_packed(
    step: Step, data: Tensor, sizes: Sequence[int], hidden: Hidden, weights: Weights
) -> tuple[Any, Hidden]:
    """A layer over packed steps; sequences that end give their last hidden state back."""
    gates, at, last = weights.of_input(data), 0, sizes[0]
    outputs, ended = [], []
    for count in sizes:
        part = gates.narrow(0, at, count)
        at += count
        if count < last:
            ended.append(_each(hidden, lambda h, c=count, n=last: h.narrow(0, c, n - c)))  # type: ignore[misc]
            hidden = _each(hidden, lambda h, c=count: h.narrow(0, 0, c))  # type: ignore[misc]
        last = count
        hidden = step(part, hidden, weights)
        outputs.append(_shown(hidden))
    ended.append(hidden)
    return concatenated(outputs, 0), _joined(ended[::-1])


def _over_packed_backwards(
    step: Step, data: Tensor, sizes: Sequence[int], start: Hidden, weights: Weights
) -> tuple[Any, Hidden]:
    """The same from the end: longer sequences begin alone, shorter ones join."""
    gates, at, last = weights.of_input(data), data.shape[0], sizes[-1]
    hidden = _each(start, lambda h: h.narrow(0, 0, last))
    outputs = []
    for count in reversed(sizes):
        if count > last:
            more = _each(start, lambda h, c=count, n=last: h.narrow(0, n, c - n))  # type: ignore[misc]
            hidden = _joined([hidden, more])
        part = gates.narrow(0, at - count, count)
        at, last = at - count, count
        hidden = step(part, hidden, weights)
        outputs.append(_shown(hidden))
    return concatenated(outputs[::-1], 0), hidden


# ---- all layers -----------------------------------------------------------------------------------------------------


class Plan(NamedTuple):
    """What the public functions are told."""

    has_biases: bool
    num_layers: int
    dropout: float
    train: bool
    bidirectional: bool


def _grouped(params: Sequence[Tensor], how: Plan, projected: bool) -> list[Weights]:
    each = 2 + 2 * how.has_biases + projected
    wanted = each * how.num_layers * (1 + how.bidirectional)
    if len(params) != wanted:
        raise RuntimeError(f"got an incorrect number of RNN parameters: expected {wanted}, got {len(params)}")
    groups = [list(params[i : i + each]) for i in range(0, len(params), each)]
    return [
        Weights(g[0], g[1], *(g[2:4] if how.has_biases else (None, None)), g[-1] if projected else None)  # type: ignore[call-arg]
        for g in groups
    ]


def _layers(run: Callable[..., Any], input: Any, hiddens: list[Hidden], weights: list[Weights], how: Plan) -> Any:
    """Every layer, its directions side by side; dropout between layers."""
    directions, finals = 1 + how.bidirectional, []
    for layer in range(how.num_layers):
        outputs = []
        for direction in range(directions):
            place = layer * directions + direction
            output, final = run(input, hiddens[place], weights[place], direction == 1)
            outputs.append(output)
            finals.append(final)
        input = outputs[0] if directions == 1 else concatenated(outputs, outputs[0].dim() - 1)
        if how.dropout and how.train and layer < how.num_layers - 1:
            input = op_call("dropout")(input, how.dropout, True)
    return input, finals


def _stacked(finals: list[Hidden]) -> Any:
    if isinstance(finals[0], tuple):
        return tuple(op_call("stack")(list(part), 0) for part in zip(*finals, strict=True))
    return op_call("stack")(finals, 0)


def _states(hx: Any) -> list[Hidden]:
    if isinstance(hx, (list, tuple)):
        return list(zip(*(h.unbind(0) for h in hx), strict=True))
    return list(hx.unbind(0))


def _fused(name: str, input: Tensor, projected: bool) -> bool:
    """Whether oneDNN runs the layers; it has no projections."""
    suits = name == "lstm" and input.dtype is float32 and bool(input.numel())
    if suits and projected:
        text = "LSTM with projections is not supported with oneDNN. Using default implementation."
        warn_once(internal(text, "aten/src/ATen/native/RNN.cpp:1512"))
    return suits and not projected


def _whole(name: str, input: Tensor, hx: Any, params: Sequence[Tensor], how: Plan, batch_first: bool) -> Any:
    step = STEPS[name]
    projected = name == "lstm" and hx[0].shape[2] != hx[1].shape[2]
    weights = _grouped(params, how, projected)
    input = input.transpose(0, 1) if batch_first else input
    run = lambda x, h, w, back: _over_steps(step, x, h, w, back)  # noqa: E731
    fused = _fused(name, input, projected)
    if fused:
        input, run = input.contiguous(), lambda x, h, w, back: fused_lstm(x, h, w, back, how, batch_first)
    output, finals = _layers(run, input, _states(hx), weights, how)
    final = _stacked(finals)
    if batch_first:
        output = output.transpose(0, 1) if name == "lstm" else output.transpose_(0, 1)
    return (output, *final) if isinstance(final, tuple) else (output, final)


def _packed(name: str, data: Tensor, sizes: Tensor, hx: Any, params: Sequence[Tensor], how: Plan) -> Any:
    step, counts = STEPS[name], sizes.tolist()
    projected = name == "lstm" and hx[0].shape[2] != hx[1].shape[2]
    run = lambda x, h, w, back: (_over_packed_backwards if back else _over_packed)(step, x, counts, h, w)  # noqa: E731
    output, finals = _layers(run, data, _states(hx), _grouped(params, how, projected), how)
    final = _stacked(finals)
    return (output, *final) if isinstance(final, tuple) else (output, final)


def _define(name: str) -> None:
    hidden, returns = ("Tensor[]", "(Tensor, Tensor, Tensor)") if name == "lstm" else ("Tensor", "(Tensor, Tensor)")
    tail = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"
    define(
        f"{name}.input(Tensor input, {hidden} hx, {tail}, bool batch_first) -> {returns}",
        doc="A recurrent network over sequences of one length.",
        composite=lambda input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first: _whole(
            name, input, hx, params, Plan(has_biases, num_layers, dropout, train, bidirectional), batch_first
        ),
        method=False,
    )
    define(
        f"{name}.data(Tensor data, Tensor batch_sizes, {hidden} hx, {tail}) -> {returns}",
        doc="A recurrent network over packed sequences.",
        composite=lambda data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional: _packed(
            name, data, batch_sizes, hx, params, Plan(has_biases, num_layers, dropout, train, bidirectional)
        ),
        method=False,
    )


def _check_cell(input: Tensor, states: tuple[Tensor, ...], w_ih: Tensor, w_hh: Tensor) -> None:
    if input.shape[1] != w_ih.shape[1]:
        raise RuntimeError(f"input has inconsistent input_size: got {input.shape[1]} expected {w_ih.shape[1]}")
    for place, state in enumerate(states):
        if input.shape[0] != state.shape[0]:
            raise RuntimeError(
                f"Input batch size {input.shape[0]} doesn't match hidden{place} batch size {state.shape[0]}"
            )
        if state.shape[1] != w_hh.shape[1]:
            raise RuntimeError(
                f"hidden{place} has inconsistent hidden_size: got {state.shape[1]}, expected {w_hh.shape[1]}"
            )


def _define_cell(name: str) -> None:
    hidden, returns = ("Tensor[]", "(Tensor, Tensor)") if name == "lstm" else ("Tensor", "Tensor")

    def cell(input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any) -> Any:
        weights = Weights(w_ih, w_hh, b_ih, b_hh, None)
        state = tuple(hx) if isinstance(hx, (list, tuple)) else hx
        _check_cell(input, state if isinstance(state, tuple) else (state,), w_ih, w_hh)
        return STEPS[name](weights.of_input(input), state, weights)

    define(
        f"{name}_cell(Tensor input, {hidden} hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> "
        f"{returns}",
        doc="One step of a recurrent network.",
        composite=cell,
        method=False,
    )


for _name in STEPS:
    _define(_name)
    _define_cell(_name)
