"""Recurrent layers and cells."""

from __future__ import annotations

import math
import numbers as number_kinds
from typing import Any, ClassVar

from stridescope.engine.ops import FUNCTIONS
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._in_each import in_each
from stridescope.engine.torch.amp.state import autocast_state
from stridescope.engine.torch.nn import init
from stridescope.engine.torch.nn.modules._factory import named_as, parameter
from stridescope.engine.torch.nn.modules.module import Module
from stridescope.engine.torch.nn.utils.rnn import PackedSequence
from stridescope.engine.warn import warn

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _zeros(shape: tuple[int, ...], like: Tensor) -> Any:
    return FUNCTIONS["torch"]["zeros"](shape, dtype=like.dtype, device=like.device)


def _check_settings(
    input_size: Any, hidden_size: Any, num_layers: int, bias: Any, batch_first: Any, dropout: Any, proj_size: int
) -> None:
    if not isinstance(dropout, number_kinds.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:  # type: ignore[operator]
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:  # type: ignore[operator]
        warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
            f"greater than 1, but got dropout={dropout} and num_layers={num_layers}"
        )
    kinds = (("bias", bias, bool), ("batch_first", batch_first, bool), ("input_size", input_size, int),
             ("hidden_size", hidden_size, int))  # fmt: skip
    for name, value, kind in kinds:
        if not isinstance(value, kind):
            raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
    for name, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
        if value <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


class RNNBase(Module):
    """What all recurrent layers share: parameters, checks and the printed form."""

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _check_settings(input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: 1 + bidirectional]:
                self._all_weights.append(self._add_layer(layer, suffix, device, dtype))
        self.reset_parameters()

    def _add_layer(self, layer: int, suffix: str, device: Any, dtype: Any) -> list[str]:
        gates, shown = _GATES[self.mode] * self.hidden_size, self.proj_size or self.hidden_size
        taken = self.input_size if layer == 0 else shown * (1 + self.bidirectional)
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (gates, taken), "weight_hh": (gates, shown)}
        if self.bias:
            shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        names = []
        for name, shape in shapes.items():
            names.append(f"{name}_l{layer}{suffix}")
            setattr(self, names[-1], parameter(shape, device, dtype))
        return names

    def reset_parameters(self) -> None:
        """Uniform numbers within one over the root of the hidden size."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters of every layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights(self) -> list[Any]:
        return [weight for weights in self.all_weights for weight in weights]

    def flatten_parameters(self) -> None:
        """Nothing to do: the layout that this makes is cuDNN's."""

    def extra_repr(self) -> str:
        """The sizes; the rest where it is not the default."""
        text = f"{self.input_size}, {self.hidden_size}"
        rest = (("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0),
                ("bidirectional", False))  # fmt: skip
        return text + "".join(f", {n}={getattr(self, n)}" for n, default in rest if getattr(self, n) != default)

    # ---- checks --------------------------------------------------------------------------------------------------

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raise for an input of another dtype, number of dims or number of features."""
        kind = self._flat_weights[0].dtype
        if input.dtype is not kind and not any(autocast_state.enabled.values()):
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({kind}). Convert input: "
                f"input.to({kind}), "
                f"or convert model: model.to({input.dtype})"
            )
        wanted = 3 if batch_sizes is None else 2
        if input.dim() != wanted:
            raise RuntimeError(f"input must have {wanted} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The sizes of the hidden state."""
        batch = input.size(0 if self.batch_first else 1) if batch_sizes is None else int(batch_sizes[0])
        return self.num_layers * (1 + self.bidirectional), batch, self.proj_size or self.hidden_size

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Raise RuntimeError for a hidden state of other sizes."""
        if tuple(hx.size()) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Check the input and the hidden state."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The hidden state in another order of the batch."""
        return hx if permutation is None else hx.index_select(1, permutation)

    # ---- running ---------------------------------------------------------------------------------------------------

    _label: ClassVar[str] = "RNN"

    def _start(self, input: Tensor, batch: int) -> Any:
        return _zeros((self.num_layers * (1 + self.bidirectional), batch, self.proj_size or self.hidden_size), input)

    def _check_unbatched(self, batched: bool, hx: Any) -> None:
        wanted = 3 if batched else 2
        if hx.dim() != wanted:
            kind = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(f"For {kind} input, hx should also be {wanted}-D but got {hx.dim()}-D tensor")

    def _each(self, hx: Any, method: str, *args: Any) -> Any:
        return getattr(hx, method)(*args)

    def _split(self, found: Any) -> tuple[Any, Any]:
        return found[0], found[1]

    def _forward_packed(self, packed: PackedSequence, hx: Any) -> Any:
        data, sizes, sorted_indices, unsorted_indices = packed
        hx = self._start(data, int(sizes[0])) if hx is None else self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(data, hx, sizes)
        found = FUNCTIONS["torch"][self.mode.lower()](
            data, sizes, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
            self.bidirectional,
        )  # fmt: skip
        output, hidden = self._split(found)
        shown = PackedSequence(output, sizes, sorted_indices, unsorted_indices)
        return shown, self.permute_hidden(hidden, unsorted_indices)


class _Recurrent(RNNBase):
    """A network that can run; ``RNNBase`` itself only holds weights."""

    @in_each
    def forward(self, input: Any, hx: Any = None) -> Any:
        """Run over sequences of one length, or over packed ones."""
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            tail = "instead" if self._label == "LSTM" else "tensor instead"
            raise ValueError(f"{self._label}: Expected input to be 2D or 3D, got {input.dim()}D {tail}")
        batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(batch_dim)
        if hx is None:
            hx = self._start(input, input.size(batch_dim))
        else:
            self._check_unbatched(batched, hx)
            hx = hx if batched else self._each(hx, "unsqueeze", 1)
        self.check_forward_args(input, hx, None)
        found = FUNCTIONS["torch"][self.mode.lower()](
            input, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional,
            self.batch_first,
        )  # fmt: skip
        output, hidden = self._split(found)
        if not batched:
            output, hidden = output.squeeze(batch_dim), self._each(hidden, "squeeze", 1)
        return output, hidden


class RNN(_Recurrent):
    """A recurrent network with tanh or relu."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            nonlinearity, args = args[3], args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity


class GRU(_Recurrent):
    """A network of gated recurrent units."""

    _label = "GRU"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class LSTM(_Recurrent):
    """A network of long short-term memory."""

    _label = "LSTM"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The sizes of the cell state."""
        layers, batch, _ = self.get_expected_hidden_size(input, batch_sizes)
        return layers, batch, self.hidden_size

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Check the input and both states."""
        self.check_input(input, batch_sizes)
        wanted = (self.get_expected_hidden_size(input, batch_sizes), self.get_expected_cell_size(input, batch_sizes))
        for place, (state, size) in enumerate(zip(hidden, wanted, strict=True)):
            self.check_hidden_size(state, size, f"Expected hidden[{place}] size {{}}, got {{}}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Both states in another order of the batch."""
        return hx if permutation is None else tuple(h.index_select(1, permutation) for h in hx)

    def _start(self, input: Tensor, batch: int) -> Any:
        layers = self.num_layers * (1 + self.bidirectional)
        sizes = (self.proj_size or self.hidden_size, self.hidden_size)
        return tuple(_zeros((layers, batch, size), input) for size in sizes)

    def _check_unbatched(self, batched: bool, hx: Any) -> None:
        wanted = 3 if batched else 2
        if any(h.dim() != wanted for h in hx):
            kind = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(
                f"For {kind} input, hx and cx should also be {wanted}-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) "
                "tensors"
            )

    def _each(self, hx: Any, method: str, *args: Any) -> Any:
        return tuple(getattr(h, method)(*args) for h in hx)

    def _split(self, found: Any) -> tuple[Any, Any]:
        return found[0], (found[1], found[2])


# ---- cells -----------------------------------------------------------------------------------------------------------


class RNNCellBase(Module):
    """One step of a recurrent layer."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        self.weight_ih = parameter((num_chunks * hidden_size, input_size), device, dtype)
        self.weight_hh = parameter((num_chunks * hidden_size, hidden_size), device, dtype)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, parameter((num_chunks * hidden_size,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform numbers within one over the root of the hidden size."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        """The sizes; the rest where it is not the default."""
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        kind = self.__dict__.get("nonlinearity", "tanh")
        return text if kind == "tanh" else f"{text}, nonlinearity={kind}"

    def _check(self, input: Tensor, states: tuple[Tensor, ...], names: tuple[str, ...]) -> bool:
        """Whether the input has a batch dim."""
        label = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{label}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        for name, state in zip(names, states, strict=False):
            if state.dim() not in (1, 2):
                raise ValueError(f"{label}: Expected {name} to be 1D or 2D, got {state.dim()}D instead")
        return input.dim() == 2  # type: ignore[no-any-return]

    def _weights(self) -> tuple[Any, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _step(self, name: str, input: Tensor, hx: Tensor | None) -> Any:
        batched = self._check(input, () if hx is None else (hx,), ("hidden",))
        input = input if batched else input.unsqueeze(0)
        if hx is None:
            hx = _zeros((input.size(0), self.hidden_size), input)
        elif not batched:
            hx = hx.unsqueeze(0)
        found = FUNCTIONS["torch"][name](input, hx, *self._weights())
        return found if batched else found.squeeze(0)


class RNNCell(RNNCellBase):
    """One step of a recurrent network with tanh or relu."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Run the step."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(f"rnn_{self.nonlinearity}_cell", input, hx)  # type: ignore[no-any-return]


class GRUCell(RNNCellBase):
    """One step of a gated recurrent unit."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Run the step."""
        return self._step("gru_cell", input, hx)  # type: ignore[no-any-return]


class LSTMCell(RNNCellBase):
    """One step of a long short-term memory."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Run the step."""
        batched = self._check(input, () if hx is None else tuple(hx), ("hx[0]", "hx[1]"))
        input = input if batched else input.unsqueeze(0)
        if hx is None:
            blank = _zeros((input.size(0), self.hidden_size), input)
            hx = (blank, blank)
        elif not batched:
            hx = (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        hy, cy = FUNCTIONS["torch"]["lstm_cell"](input, hx, *self._weights())
        return (hy, cy) if batched else (hy.squeeze(0), cy.squeeze(0))


named_as("rnn", globals())
