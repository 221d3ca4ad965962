"""``torch.nn.parallel``: DataParallel on no device or on one; the rest says that it is not here."""

from __future__ import annotations

from typing import Any

from stridescope.engine.device import device
from stridescope.engine.devices.registry import cuda_devices
from stridescope.engine.torch._not_yet import attribute_of
from stridescope.engine.torch.nn.modules.module import Module


class DataParallel(Module):
    """Splits a batch over GPUs. Without any, or with one, it calls the module as it is.

    Raises NotImplementedError when there are several devices to split over.
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        ids = list(range(len(cuda_devices()))) if device_ids is None else list(device_ids)
        if len(ids) > 1:
            raise NotImplementedError("torch.nn.DataParallel over several devices is not in Stridescope yet")
        self.device_ids = [each if isinstance(each, int) else device(each).index or 0 for each in ids]
        self.dim, self.output_device = dim, output_device
        self.module = module
        if self.device_ids:
            self.module.cuda(self.device_ids[0])

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module, with tensors moved to its device."""
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        on = device("cuda", self.device_ids[0])
        moved = [_moved(value, on) for value in inputs]
        return self.module(*moved, **{name: _moved(value, on) for name, value in kwargs.items()})


def _moved(value: Any, on: Any) -> Any:
    if hasattr(value, "to"):
        return value.to(on)
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_moved(each, on) for each in value)
    if isinstance(value, dict):
        return {key: _moved(each, on) for key, each in value.items()}
    return value


DataParallel.__module__ = "torch.nn.parallel.data_parallel"
__getattr__ = attribute_of("torch.nn.parallel")
__all__ = ["DataParallel"]
