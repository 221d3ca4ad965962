"""Memory shared with other libraries through DLPack; the right answers are PyTorch 2.13's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stridescope.engine.torch as torch
from stridescope.engine.torch.utils.dlpack import from_dlpack, to_dlpack


def test_numpy_and_tensors_share_memory_both_ways() -> None:
    tensor = torch.arange(6.0).reshape(2, 3)
    array = np.from_dlpack(tensor)
    tensor[0, 0] = 9
    assert array[0, 0] == 9
    numbers = np.zeros(3)
    torch.from_dlpack(numbers).add_(1)
    assert numbers.tolist() == [1, 1, 1]


def test_a_tensor_comes_back_as_it_was() -> None:
    tensor = torch.arange(6.0).reshape(2, 3).t()
    same, copy = torch.from_dlpack(tensor), torch.from_dlpack(tensor, copy=True)
    assert same.data_ptr() == tensor.data_ptr() != copy.data_ptr()
    assert same.stride() == (1, 3) and not same._is_view()
    assert tuple(map(int, tensor.__dlpack_device__())) == (1, 0)


@pytest.mark.parametrize(
    ("version", "name"),
    [(None, "dltensor"), ((0, 8), "dltensor"), ((1, 0), "dltensor_versioned"), ((1, 2), "dltensor_versioned")],
)
def test_a_capsule_is_of_the_version_that_was_asked_for(version: tuple[int, int] | None, name: str) -> None:
    capsule = torch.ones(2).__dlpack__(max_version=version)
    assert str(capsule).startswith(f'<capsule object "{name}" at ')
    torch.from_dlpack(capsule).add_(1)
    assert str(capsule).startswith(f'<capsule object "used_{name}" at ')


def test_a_capsule_is_used_once() -> None:
    tensor = torch.ones(2)
    capsule = to_dlpack(tensor)
    received = from_dlpack(capsule)
    received[0] = 5
    assert received.data_ptr() == tensor.data_ptr()
    assert tensor.tolist() == [5, 1]
    with pytest.raises(RuntimeError, match="^from_dlpack received an invalid capsule"):
        from_dlpack(capsule)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: torch.ones(2, requires_grad=True).__dlpack__(), BufferError, "require gradient"),
        (lambda: torch.tensor([1j]).conj().__dlpack__(), BufferError, "conjugate bit"),
        (lambda: torch.ones(2, device="meta").__dlpack__(), BufferError, "^Cannot pack tensors on meta$"),
        (lambda: torch.ones(2, device="meta").__dlpack_device__(), ValueError, "^Unknown device type meta for Dlpack$"),
        (lambda: torch.ones(2).__dlpack__(stream=1), AssertionError, "^stream should be None on cpu.$"),
        (lambda: torch.from_dlpack([1]), RuntimeError, "received an invalid capsule"),
    ],
)
def test_what_cannot_be_shared_is_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
