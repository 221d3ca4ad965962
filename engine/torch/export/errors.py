"""The errors of exporting, by PyTorch's names."""

from __future__ import annotations


class GuardOnDataDependentSymNode(RuntimeError):
    """The program asks a tensor for its elements, which an exported graph does not have."""

    __module__ = "torch.fx.experimental.symbolic_shapes"
