"""``torch.nn.utils``: clipping gradients, parameters as one vector."""

from __future__ import annotations
