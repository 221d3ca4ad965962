"""``torch.OutOfMemoryError`` and PyTorch's words for it."""

from __future__ import annotations

_HINT = (
    "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid "
    "fragmentation.  See documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html"
    "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
)


class OutOfMemoryError(RuntimeError):
    """Exception raised when device is out of memory"""  # noqa: D400  (PyTorch's own docstring)


OutOfMemoryError.__module__ = "torch"


def format_size(size: int) -> str:
    """A size as PyTorch's error texts write it: exactly 1 GiB is ``1024.00 MiB``."""
    if size <= 1 << 10:
        return f"{size} bytes"
    for power, unit in ((10, "KiB"), (20, "MiB")):
        if size <= 1 << power + 10:
            return f"{size / (1 << power):.2f} {unit}"
    return f"{size / (1 << 30):.2f} GiB"


def more_than_an_exabyte() -> OutOfMemoryError:
    """The error for a size at or above 2**60."""
    return OutOfMemoryError("CUDA out of memory. Tried to allocate more than 1EB memory.")


def rejection(segment: int) -> OutOfMemoryError:
    """The error of ``throw_on_cudamalloc_oom``."""
    return OutOfMemoryError(
        "CUDA out of memory. Allocation was preemptively rejected because it would exceed "
        f"per_process_memory_fraction limit. Requested size: {format_size(segment)}"
    )


def out_of_memory_text(
    *, segment: int, device: int, total: int, free: int, limit: int | None, allocated: int, reserved: int, private: int
) -> str:
    """The long text. ``private`` is the free memory that private pools hold, which PyTorch counts as allocated."""
    allowed = "" if limit is None else f"{format_size(limit)} allowed; "
    pools = f"with {format_size(private)} allocated in private pools (e.g., CUDA Graphs), " if private else ""
    return (
        f"CUDA out of memory. Tried to allocate {format_size(segment)}. GPU {device} has a total capacity of "
        f"{format_size(total)} of which {format_size(free)} is free. {allowed}Of the allocated memory "
        f"{format_size(allocated + private)} is allocated by PyTorch, {pools}and "
        f"{format_size(reserved - allocated - private)} is reserved by PyTorch but unallocated. {_HINT}"
    )
