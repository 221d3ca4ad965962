"""``torch.distributions.utils``: helpers that distributions of one's own use."""

from __future__ import annotations

import functools
from typing import Any

from stridescope.engine import torch
from stridescope.engine.torch.distributions.discrete import clamped as clamp_probs
from stridescope.engine.torch.distributions.discrete import odds_of, probability_of
from stridescope.engine.torch.distributions.distribution import broadcast_all

lazy_property = functools.cached_property


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Probabilities from log-odds, or from logarithms of classes' shares."""
    return probability_of(logits) if is_binary else torch.softmax(logits, dim=-1)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Log-odds, or logarithms of classes' probabilities."""
    return odds_of(probs) if is_binary else torch.log(clamp_probs(probs))


__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits"]
