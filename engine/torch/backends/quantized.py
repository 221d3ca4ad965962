"""``torch.backends.quantized``: the engines that quantized kernels would use; there are none here."""

from __future__ import annotations

engine = "none"
supported_engines = ["none"]
