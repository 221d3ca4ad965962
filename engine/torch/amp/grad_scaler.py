"""``torch.amp.GradScaler``: scales the loss so that small gradients survive half precision."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

from stridescope.engine import torch
from stridescope.engine.autograd.modes import no_grad
from stridescope.engine.devices.registry import cuda_devices
from stridescope.engine.dtype import float16
from stridescope.engine.tensor import Tensor


class OptState(Enum):
    """What has happened to an optimizer since the last ``update``."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class _Progress:
    """An optimizer's stage, and per device whether an infinite gradient was found."""

    def __init__(self) -> None:
        self.stage = OptState.READY
        self.found_inf: dict[Any, Tensor] = {}


_FIX = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."
_UNFIT = (
    "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with requires_grad=False."
)


def _require(holds: Any, complaint: str) -> None:
    if not holds:
        raise AssertionError(complaint)


class GradScaler:
    """Scales losses up, gradients down again, and skips steps whose gradients overflowed."""

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device, self._enabled = device, enabled
        if device == "cuda" and enabled and not cuda_devices():
            text = "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling."
            warnings.warn(text, stacklevel=2)
            self._enabled = False
        if self._enabled:
            _require(growth_factor > 1.0, "The growth factor must be > 1.0.")
            _require(backoff_factor < 1.0, "The backoff factor must be < 1.0.")
            self._init_scale, self._init_growth_tracker = init_scale, 0
            self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
            self._growth_interval = growth_interval
            self._scale: Tensor | None = None
            self._growth_tracker: Tensor | None = None
            self._states: defaultdict[int, _Progress] = defaultdict(_Progress)

    def _check(self, name: str) -> tuple[Tensor, Tensor]:
        """Scale and growth tracker; raises AssertionError before the first ``scale``."""
        _require(self._scale is not None, f"Attempted {name} but _scale is None.  {_FIX}")
        _require(self._growth_tracker is not None, f"Attempted {name} but _growth_tracker is None.  {_FIX}")
        assert self._scale is not None and self._growth_tracker is not None
        return self._scale, self._growth_tracker

    def scale(self, outputs: Any) -> Any:
        """A tensor, or all tensors of an iterable, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                on = outputs.device
                self._scale = torch.full((), self._init_scale, dtype=torch.float32, device=on)  # type: ignore[misc]
                self._growth_tracker = torch.full((), self._init_growth_tracker, dtype=torch.int32, device=on)  # type: ignore[misc]
            return outputs * self._scale.to(device=outputs.device, non_blocking=True)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Divide an optimizer's gradients by the scale; raises RuntimeError the second time."""
        if not self._enabled:
            return
        scale, _ = self._check("unscale_")
        progress = self._states[id(optimizer)]
        if progress.stage is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if progress.stage is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        found = torch.full((), 0.0, dtype=torch.float32, device=scale.device)  # type: ignore[misc]
        progress.found_inf = _unscaled(optimizer, scale.double().reciprocal().float(), found)
        progress.stage = OptState.UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's step, unless a gradient is infinite; raises RuntimeError the second time."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check("step")
        progress = self._states[id(optimizer)]
        if progress.stage is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if progress.stage is OptState.READY:
            self.unscale_(optimizer)
        _require(progress.found_inf, "No inf checks were recorded for this optimizer.")
        finite = not sum(found.item() for found in progress.found_inf.values())
        result = optimizer.step(*args, **kwargs) if finite else None
        progress.stage = OptState.STEPPED
        return result

    def update(self, new_scale: Any = None) -> None:
        """Shrink the scale after an overflow, grow it after enough steps without one."""
        if not self._enabled:
            return
        scale, tracker = self._check("update")
        if isinstance(new_scale, float):
            scale.fill_(new_scale)
        elif new_scale is not None:
            fits = new_scale.device.type == self._device and new_scale.numel() == 1 and not new_scale.requires_grad
            _require(fits, _UNFIT)
            scale.copy_(new_scale)
        else:
            found = [flag for progress in self._states.values() for flag in progress.found_inf.values()]
            _require(found, "No inf checks were recorded prior to update.")
            self._adapt(scale, tracker, any(flag.item() for flag in found))
        self._states = defaultdict(_Progress)

    def _adapt(self, scale: Tensor, tracker: Tensor, overflow: bool) -> None:
        steps = 0 if overflow else int(tracker.item()) + 1
        if overflow:
            scale.mul_(self._backoff_factor)
        elif steps == self._growth_interval:
            grown = scale * self._growth_factor
            if grown.isfinite():  # the scale itself must not overflow
                scale.copy_(grown)
            steps = 0
        tracker.fill_(steps)

    def get_scale(self) -> float:
        """The scale as a number; 1 when disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def get_growth_factor(self) -> float:
        """By what the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Choose by what the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """By what the scale shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Choose by what the scale shrinks."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many clean steps the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Choose after how many clean steps the scale grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def is_enabled(self) -> bool:
        """Whether it does anything."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Scale and settings; empty when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(), "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval, "_growth_tracker": self._get_growth_tracker(),
        }  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` returned; raises RuntimeError for that of a disabled scaler."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale, self._init_growth_tracker = state_dict["scale"], state_dict["_growth_tracker"]
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)


@no_grad()
def _unscaled(optimizer: Any, inverse: Tensor, found: Tensor) -> dict[Any, Tensor]:
    """Multiply all gradients by ``inverse``; for each device, whether one of them isn't finite."""
    flags: dict[Any, Tensor] = {}
    grads = [param.grad for group in optimizer.param_groups for param in group["params"] if param.grad is not None]
    if any(grad.dtype is float16 for grad in grads):
        raise ValueError("Attempting to unscale FP16 gradients.")
    for grad in grads:
        flag = flags.setdefault(grad.device, found.to(device=grad.device, copy=True))
        if not grad.isfinite().all():
            flag.fill_(1.0)
        grad.mul_(inverse.to(grad.device))
    return flags


GradScaler.__module__ = "torch.amp.grad_scaler"
