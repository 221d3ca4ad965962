"""``torch.nn.utils``: clipping gradients, parameters as one vector, sequences of different lengths."""

from __future__ import annotations

from stridescope.engine.torch.nn.utils import rnn
