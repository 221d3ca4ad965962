"""``DataParallel`` on no device or on one."""

from __future__ import annotations

from typing import Any

from stridescope.engine.device import device
from stridescope.engine.devices.registry import cuda_devices
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
        return self.module(
            *(moved(value, on) for value in inputs), **{name: moved(value, on) for name, value in kwargs.items()}
        )


def moved(value: Any, on: Any) -> Any:
    """The tensors in nested lists, tuples and dicts, on a device."""
    if hasattr(value, "to"):
        return value.to(on)
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(moved(each, on) for each in value)
    if isinstance(value, dict):
        return {key: moved(each, on) for key, each in value.items()}
    return value


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Call a module as DataParallel would; ``inputs`` is one value or a tuple of them."""
    arguments = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*arguments, **(module_kwargs or {}))


DataParallel.__module__ = "torch.nn.parallel.data_parallel"
