"""``torch.nn.utils``: clipping gradients, parameters as one vector, sequences of different lengths."""

from __future__ import annotations

from stridescope.engine.torch.nn.utils import clip_grad, convert_parameters, rnn
from stridescope.engine.torch.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from stridescope.engine.torch.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
