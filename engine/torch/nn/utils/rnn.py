"""``torch.nn.utils.rnn``: sequences of different lengths, padded and packed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from stridescope.engine.dtype import int64
from stridescope.engine.ops import FUNCTIONS
from stridescope.engine.ops.from_data import as_tensor
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._not_yet import missing_from


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """The steps of several sequences, all first steps first; ``batch_sizes`` counts the sequences at each step."""

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        """Keep the parts; the order back is found from the order."""
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is not None and batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They "
                "should be instantiated by functions like pack_sequence and pack_padded_sequences in nn.utils.rnn. "
                "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)  # type: ignore[arg-type]

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a GPU."""
        return bool(self.data.is_cuda)

    def is_pinned(self) -> bool:
        """Whether the data is in pinned memory."""
        return bool(self.data.is_pinned())

    def pin_memory(self) -> PackedSequence:
        """The same with pinned data."""
        return type(self)(self.data.pin_memory(), *self[1:])

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Move or cast the data, and move the orders along."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        kept = {k: v for k, v in kwargs.items() if k not in ("device", "dtype")}
        orders = [
            None if o is None else o.to(data.device, **kept) for o in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, *orders)

    def cpu(self) -> PackedSequence:
        """Move to the CPU."""
        return self.to("cpu")

    def cuda(self) -> PackedSequence:
        """Move to the GPU."""
        return self.to("cuda")

    def double(self) -> PackedSequence:
        """Cast to float64."""
        return type(self)(self.data.double(), *self[1:])

    def float(self) -> PackedSequence:
        """Cast to float32."""
        return type(self)(self.data.float(), *self[1:])

    def half(self) -> PackedSequence:
        """Cast to float16."""
        return type(self)(self.data.half(), *self[1:])


PackedSequence.__module__ = "torch.nn.utils.rnn"


def invert_permutation(permutation: Tensor | None) -> Any:
    """The order that undoes an order."""
    if permutation is None:
        return None
    output = FUNCTIONS["torch"]["empty_like"](permutation)
    places = FUNCTIONS["torch"]["arange"](0, permutation.numel(), device=permutation.device)
    return output.scatter_(0, permutation, places)


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences of given lengths."""
    counts = lengths if isinstance(lengths, Tensor) else as_tensor(lengths, dtype=int64, device="cpu")
    order = None
    if not enforce_sorted:
        counts, order = counts.sort(descending=True)
        input = input.index_select(0 if batch_first else 1, order.to(input.device))
    if batch_first:
        input = input.transpose(0, 1)
    _check_lengths(input, counts)
    data, batch_sizes = FUNCTIONS["torch"]["_pack_padded_sequence"](input, counts, False)
    return PackedSequence(data, batch_sizes, order, None)


def _check_lengths(input: Tensor, counts: Tensor) -> None:
    sizes: list[int] = counts.tolist()
    batch = input.size(1)
    if len(sizes) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} (batch_size={batch})"
        )
    if any(n <= 0 for n in sizes):
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if any(a < b for a, b in zip(sizes, sizes[1:], strict=False)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do "
            "not need ONNX exportability."
        )
    if sizes[0] > input.size(0):
        raise RuntimeError(f"Expected sequence length to be larger than 0 in RNN, got {input.size(0)}")


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The padded sequences and their lengths again."""
    longest = sequence.batch_sizes.size(0)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {longest}"
            )
        longest = total_length
    padded, lengths = FUNCTIONS["torch"]["_pad_packed_sequence"](
        sequence.data, sequence.batch_sizes, batch_first, padding_value, longest
    )
    order = sequence.unsorted_indices
    if order is not None:
        dim = 0 if batch_first else 1
        return padded.index_select(dim, order), lengths[order.cpu()]
    return padded, lengths


def pad_sequence(
    sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Sequences of different lengths in one tensor, filled up with a value."""
    if not (isinstance(sequences, (list, tuple)) or hasattr(sequences, "__iter__")):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    parts = list(sequences.unbind(0)) if isinstance(sequences, Tensor) else list(sequences)
    if not parts:
        raise RuntimeError("received an empty list of sequences")
    return FUNCTIONS["torch"]["pad_sequence"](parts, batch_first, padding_value, padding_side)  # type: ignore[no-any-return]


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The single sequences again."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [sequence[: int(n)] for sequence, n in zip(padded_sequences, lengths, strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack single sequences."""
    lengths = as_tensor([s.size(0) for s in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The single sequences of a packed one."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


__getattr__ = missing_from("torch.nn.utils.rnn")
