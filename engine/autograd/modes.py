"""Grad mode and inference mode: thread-local switches that say whether ops build a graph."""

from __future__ import annotations

import threading


class GradMode(threading.local):
    """The switches of this thread.

    Attributes:
        enabled: ops on tensors that require grad make nodes (``torch.is_grad_enabled()``).
        inference: new tensors are inference tensors and nothing is tracked.

    Features that need the dispatcher's full path (autocast, function modes, inference mode) count themselves with
    ``journal.require_full``.
    """

    enabled: bool = True
    inference: bool = False


grad_mode = GradMode()


class Anomaly:
    """``torch.autograd.set_detect_anomaly``: whether nodes remember who made them and gradients are checked."""

    enabled: bool = False
    check_nan: bool = True


anomaly = Anomaly()
