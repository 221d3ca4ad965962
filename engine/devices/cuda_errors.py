"""``torch.AcceleratorError`` and PyTorch's words for the errors of the CUDA runtime."""

from __future__ import annotations

_RUNTIME_PAGE = "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html"
_SUFFIX = (
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
    "incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable "
    "device-side assertions.\n"
)


class AcceleratorError(RuntimeError):
    """Exception raised while executing on device"""  # noqa: D400  (PyTorch's own docstring)

    error_code = 0


AcceleratorError.__module__ = "torch"


def _cuda_error(code: int, text: str, help_text: str) -> AcceleratorError:
    error = AcceleratorError(f"CUDA error: {text}\n{help_text}\n{_SUFFIX}")
    error.error_code = code
    return error


def _named(code: int, name: str, text: str) -> AcceleratorError:
    return _cuda_error(code, text, f"Search for `{name}' in {_RUNTIME_PAGE} for more information.")


def invalid_device() -> AcceleratorError:
    """A device index that no device has."""
    return _cuda_error(101, "invalid device ordinal", "GPU device may be out of range, do you have enough GPUs?")


def not_while_capturing() -> AcceleratorError:
    """The host asked for something that a graph capture cannot hold, such as a value or a wait."""
    return _named(900, "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing")


def capture_invalidated() -> AcceleratorError:
    """The end of a capture in which something failed."""
    return _named(901, "cudaErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture")


def invalid_handle() -> AcceleratorError:
    """A stream or an event that is none, or none that can do this."""
    return _named(400, "cudaErrorInvalidResourceHandle", "invalid resource handle")
