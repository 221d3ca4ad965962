"""``torch.autocast`` and ``GradScaler``; the expected dtypes and numbers are PyTorch 2.13's."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import stridescope.engine.torch as torch

A, B = torch.ones(2, 2), torch.ones(2, 2)
LOW, HIGH = torch.bfloat16, torch.float32


@pytest.mark.parametrize(
    ("name", "run", "kind"),
    [
        ("matmul", lambda low: A @ B, LOW),
        ("add", lambda low: A + B, HIGH),
        ("add to a product", lambda low: low + A, HIGH),
        ("exp of a product", lambda low: low.exp(), LOW),
        ("sum of a product", lambda low: low.sum(), LOW),
        ("prod of a product", lambda low: low.prod(), HIGH),
        ("cat", lambda low: torch.cat([low, A]), HIGH),
        ("cat of low ones", lambda low: torch.cat([low, low]), LOW),
        ("mse_loss", lambda low: torch.nn.functional.mse_loss(low, B), HIGH),
        ("linear", lambda low: torch.nn.functional.linear(A, B), LOW),
        ("doubles", lambda low: A.double() @ B.double(), torch.float64),
    ],
)
def test_each_op_runs_in_its_dtype(name: str, run: Any, kind: Any) -> None:
    with torch.autocast("cpu"):
        assert run(A @ B).dtype is kind, name
    assert (A @ B).dtype is HIGH


def test_another_low_dtype_is_refused_before_float32_is_met() -> None:
    half, single, double = (torch.ones(2, dtype=kind) for kind in (torch.float16, torch.float32, torch.float64))
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.cat([single, half]).dtype is torch.float32
        assert torch.cat([double, double.bfloat16()]).dtype is torch.float64
        with pytest.raises(RuntimeError, match="Unexpected floating ScalarType in at::autocast::prioritize"):
            torch.cat([half, single])


def test_weights_are_cast_once_and_keep_their_dtype() -> None:
    weight = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu"):
        first, second = A @ weight, A @ weight
        with torch.autocast("cpu", enabled=False):
            assert (A @ weight).dtype is HIGH
    casts = [out.grad_fn.next_functions[1][0] for out in (first, second)]
    assert casts[0] is casts[1]
    assert casts[0].name() == "ToCopyBackward0"
    first.float().sum().backward()
    assert weight.grad.dtype is HIGH


def test_it_decorates_and_leaves_nothing_behind() -> None:
    @torch.autocast("cpu", dtype=torch.float16)
    def product() -> Any:
        return A @ B

    assert product().dtype is torch.float16
    assert not torch.is_autocast_enabled("cpu")
    with pytest.raises(ZeroDivisionError), torch.autocast("cpu"):
        raise ZeroDivisionError
    assert not torch.is_autocast_enabled("cpu")


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'meta'"):
        torch.autocast("meta")
    with pytest.warns(UserWarning, match="the target dtype is not supported. Disabling autocast"):
        assert not torch.autocast("cpu", dtype=torch.float64)._enabled


def test_scaler_skips_overflows_and_grows() -> None:
    weight = torch.tensor([1.0, 2.0], requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.25)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)

    def step(factor: float) -> None:
        optimizer.zero_grad()
        scaler.scale((weight * weight).sum() * factor).backward()
        scaler.step(optimizer)
        scaler.update()

    step(1.0)
    assert (weight.tolist(), scaler.get_scale()) == ([0.5, 1.0], 1024.0)
    step(float("inf"))
    assert (weight.tolist(), scaler.get_scale()) == ([0.5, 1.0], 512.0)
    step(0.0)
    step(0.0)
    assert scaler.get_scale() == 1024.0
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        scaler.update()


def test_unscaling_twice_is_refused() -> None:
    weight = torch.ones(1, requires_grad=True)
    optimizer, scaler = torch.optim.SGD([weight]), torch.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale(weight.sum()).backward()
    scaler.unscale_(optimizer)
    assert weight.grad.tolist() == [1.0]
    with pytest.raises(RuntimeError, match="already been called on this optimizer since the last update"):
        scaler.unscale_(optimizer)


def test_without_a_gpu_the_default_scaler_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    from stridescope.engine.torch.amp import grad_scaler

    monkeypatch.setattr(grad_scaler, "cuda_devices", list)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        scaler = torch.amp.GradScaler()
    assert not scaler.is_enabled()
    assert "CUDA is not available" in str(said[0].message)
