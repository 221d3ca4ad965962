"""Tensors on meta have no values: what depends on values is refused, copies stay there, nothing takes memory."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

import stridescope.engine.torch as torch

WHERE = "https://pytorch.org/tutorials/advanced/custom_ops_landing_page.html"


def meta(*size: int, **options: Any) -> Any:
    return torch.empty(*size, device="meta", **options)


@pytest.mark.parametrize(
    ("call", "op"),
    [
        (lambda a: torch.equal(a, a), "equal"),
        (lambda a: torch.unique(a), "_unique2"),
        (lambda a: torch.unique(a, dim=0), "unique_dim"),
        (lambda a: torch.unique_consecutive(a), "unique_consecutive"),
        (lambda a: torch.masked_select(a, a > 0), "masked_select"),
        (lambda a: torch.bincount(meta(3, dtype=torch.int64)), "bincount"),
        (lambda a: torch.histogram(a, 3), "histogram.bin_ct"),
        (lambda a: torch.geqrf(a), "geqrf"),
        (lambda a: torch.linalg.lstsq(a, a), "linalg_lstsq.out"),
    ],
)
def test_what_depends_on_values_has_no_kernel(call: Callable[[Any], Any], op: str) -> None:
    with pytest.raises(NotImplementedError) as refused:
        call(meta(3, 4))
    said = str(refused.value)
    assert said.startswith(f"aten::{op}: attempted to run this operator with Meta tensors") and said.endswith(WHERE)


@pytest.mark.parametrize(
    "call",
    [
        lambda a: torch.nonzero(a),
        lambda a: torch.argwhere(a),
        lambda a: torch.where(a > 0),
        lambda a: a[a > 0],
        lambda a: a[meta(3) > 0],
    ],
)
def test_positions_depend_on_values(call: Callable[[Any], Any]) -> None:
    with pytest.raises(NotImplementedError, match="torch.nonzero.. raises unimplemented by default"):
        call(meta(3, 4))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a, o: torch.allclose(a, a), "Tensor.item() cannot be called on meta tensors"),
        (lambda a, o: torch.is_nonzero(a[0, 0]), "Tensor.item() cannot be called on meta tensors"),
        (
            lambda a, o: torch.repeat_interleave(a[:, 0], meta(3, dtype=torch.int64)),
            "cannot repeat_interleave a meta tensor without output_size",
        ),
        (lambda a, o: o + a, "Tensor on device meta is not on the expected device cpu!"),
        (lambda a, o: a * o, "Tensor on device cpu is not on the expected device meta!"),
        (lambda a, o: torch.where(a > 0, a, o), "Tensor on device cpu is not on the expected device meta!"),
        (lambda a, o: torch.cat([o, a]), "Tensor on device meta is not on the expected device cpu!"),
        (lambda a, o: torch.nn.functional.mse_loss(a, o), "Tensor on device cpu is not on the expected device meta!"),
    ],
)
def test_errors(call: Callable[[Any, Any], Any], message: str) -> None:
    with pytest.raises(RuntimeError) as refused:
        call(meta(3, 4), torch.ones(3, 4))
    assert str(refused.value) == message


@pytest.mark.parametrize("device", ["meta", "cuda"])
def test_a_deep_copy_stays_on_its_device(device: str) -> None:
    layer = copy.deepcopy(torch.nn.Linear(2, 3, device=device))
    assert layer.weight.device.type == device and layer.weight.requires_grad
    view = copy.deepcopy(torch.ones(4, device=device)[1:])
    assert view.device.type == device and view.untyped_storage().device.type == device
    assert view.untyped_storage().clone().device.type == device and view.storage_offset() == 1


def test_a_deep_copy_on_cuda_has_a_block_of_its_own() -> None:
    x = torch.arange(3.0, device="cuda")
    before = torch.cuda.memory_allocated()
    twin = copy.deepcopy(x)
    assert torch.cuda.memory_allocated() == before + 512 and twin.tolist() == [0.0, 1.0, 2.0]
    assert twin.data_ptr() != x.data_ptr()


def test_no_size_is_too_large() -> None:
    huge = torch.zeros(1 << 20, 1 << 20, device="meta")
    assert huge.shape == (1 << 20, 1 << 20) and huge.data_ptr() == 0
    assert huge.t()[5, :7].shape == (7,) and huge.fill_(2).zero_() is huge
    assert torch.nn.Linear(1 << 18, 1 << 18, device="meta").weight.numel() == 1 << 36
