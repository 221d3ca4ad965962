"""Softmax over many classes, the rare ones in clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from stridescope.engine.ops import FUNCTIONS
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn.modules._factory import named_as
from stridescope.engine.torch.nn.modules.container import ModuleList, Sequential
from stridescope.engine.torch.nn.modules.linear import Linear
from stridescope.engine.torch.nn.modules.module import Module


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log softmax whose rare classes stand in clusters with smaller projections."""

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        bounds = list(cutoffs)
        if not bounds:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        bad = bounds != sorted(bounds) or min(bounds) <= 0 or max(bounds) > n_classes - 1
        if bad or len(set(bounds)) != len(bounds) or any(int(c) != c for c in bounds):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                "value "
                "is between 1 and n_classes-1"
            )
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*bounds, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // (div_value ** (i + 1)))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            first = Linear(in_features, hidden, bias=False, device=device, dtype=dtype)
            self.tail.append(Sequential(first, Linear(hidden, size, bias=False, device=device, dtype=dtype)))

    def reset_parameters(self) -> None:
        """Start all projections anew."""
        self.head.reset_parameters()
        for first, second in self.tail:  # type: ignore[attr-defined]
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """The log probability of each target, and the mean loss."""
        batched = target_.dim() > 0
        input, target = (input_, target_) if batched else (input_.unsqueeze(0), target_.unsqueeze(0))
        self._check(input_, target_, batched)
        output, chosen = self._clusters(input, target)
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, chosen.unsqueeze(1)).squeeze()
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _check(self, input: Tensor, target: Tensor, batched: bool) -> None:
        if batched and input.size(0) != target.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if target.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if input.dim() != (2 if batched else 1):
            kind = "2D input tensor for 1D" if batched else "1D input tensor for 0D"
            raise RuntimeError(f"Expected {kind} target tensor")

    def _clusters(self, input: Tensor, target: Tensor) -> tuple[Any, Any]:
        """The part of the log probabilities inside the clusters, and the head's entry for each target."""
        output: Any = input.new_zeros(target.size(0))
        chosen, used = target.new_empty(target.size(0)), 0
        bounds = [0, *self.cutoffs]
        for i in range(len(bounds) - 1):
            low, high = bounds[i], bounds[i + 1]
            rows = ((target >= low) & (target < high)).nonzero().squeeze()
            if rows.numel() == 0:
                continue
            own = target[rows] if i == 0 else target[rows] - low
            if i == 0:
                chosen.index_copy_(0, rows, own)
            else:
                logs = F.log_softmax(self.tail[i - 1](input.index_select(0, rows)), dim=1)
                chosen.index_fill_(0, rows, self.shortlist_size + i - 1)
                output.index_copy_(0, rows, logs.gather(1, own.reshape(-1, 1)).squeeze(1))
            used += rows.numel()
        if used != target.size(0):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{target.min().item()}, "
                f"{target.max().item()}] were found. "
            )
        return output, chosen

    def log_prob(self, input: Tensor) -> Tensor:
        """The log probabilities of all classes."""
        head = self.head(input)
        out = head.new_empty((head.size(0), self.n_classes))
        logs = F.log_softmax(head, dim=1)
        out[:, : self.shortlist_size] = logs[:, : self.shortlist_size]
        pairs = zip(self.cutoffs, self.cutoffs[1:], strict=False)
        for i, (start, stop) in enumerate(pairs):
            inner = F.log_softmax(self.tail[i](input), dim=1)
            out[:, start:stop] = inner + logs[:, self.shortlist_size + i].unsqueeze(1)
        return out  # type: ignore[no-any-return]

    def predict(self, input: Tensor) -> Tensor:
        """The most likely class of each row."""
        return FUNCTIONS["torch"]["argmax"](self.log_prob(input), dim=1)  # type: ignore[no-any-return]


named_as("adaptive", globals())
