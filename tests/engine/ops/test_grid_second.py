"""Second derivatives of grid_sample; the expected numbers are PyTorch's."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from stridescope.engine import torch

F: Any = torch.nn.functional
KINDS = [*itertools.product((2,), ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (False,))]
KINDS += [(2, "bilinear", "reflection", True), (2, "bicubic", "zeros", True), (3, "bilinear", "reflection", False)]


def image_and_grid(dims: int) -> tuple[Any, Any]:
    image = torch.linspace(-1, 1, 2 * 2 * 4**dims, dtype=torch.float64).sin().reshape(2, 2, *[4] * dims)
    wide = (torch.linspace(-1.7, 1.9, 2 * 3**dims * dims, dtype=torch.float64) * 7).sin().mul(1.3)
    return image.requires_grad_(), wide.reshape(2, *[3] * dims, dims).requires_grad_()


@pytest.mark.parametrize(("dims", "mode", "padding", "align"), KINDS)
def test_second_derivatives_are_those_of_finite_differences(dims: int, mode: str, padding: str, align: bool) -> None:
    image, grid = image_and_grid(dims)
    given = (image[:1, :1, :2].detach().requires_grad_(), grid[:1, :1, :2].detach().requires_grad_())
    assert torch.autograd.gradgradcheck(
        lambda a, b: F.grid_sample(a, b, mode=mode, padding_mode=padding, align_corners=align), given
    )


@pytest.mark.parametrize(
    ("dims", "mode", "padding", "expected"),
    [
        (2, "bilinear", "zeros", (-1.56104, -10.2141, 17.19396)),
        (2, "bicubic", "reflection", (0.0, -4.29146, 4.76024)),
        (2, "nearest", "zeros", (None, 0.0, 6.52523)),
        (3, "bilinear", "border", (0.0, -7.16212, 56.65354)),
    ],
)
def test_values_and_nodes(dims: int, mode: str, padding: str, expected: tuple[float | None, ...]) -> None:
    image, grid = image_and_grid(dims)
    sampled = F.grid_sample(image, grid, mode=mode, padding_mode=padding, align_corners=False)
    start = torch.linspace(0, 1, sampled.numel(), dtype=torch.float64).cos().reshape(sampled.shape).requires_grad_()
    a, b = torch.autograd.grad(sampled, (image, grid), start, create_graph=True)
    assert a.grad_fn is b.grad_fn and a.grad_fn.name() == f"GridSampler{dims}DBackwardBackward0"
    assert [node.variable is t for (node, _), t in zip(a.grad_fn.next_functions, (start, image, grid), strict=True)]
    total = (a * a.detach().cos()).sum() + (b * b.detach().cos()).sum()
    found = torch.autograd.grad(total, (image, grid, start), allow_unused=True)
    assert [None if f is None else pytest.approx(f.sum().item(), abs=1e-4) for f in found] == list(expected)


def test_a_third_derivative_and_one_argument_alone() -> None:
    image, grid = image_and_grid(2)
    sampled = F.grid_sample(image, grid, mode="bicubic", align_corners=True)
    (first,) = torch.autograd.grad(sampled.sum(), grid, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), grid, create_graph=True)
    (third,) = torch.autograd.grad(second.sum(), image)
    assert third.shape == image.shape and third.abs().sum().item() > 1
    alone = F.grid_sample(image, grid.detach(), align_corners=False)
    start = torch.ones_like(alone).requires_grad_()
    (gradient,) = torch.autograd.grad(alone, image, start, create_graph=True)
    assert gradient.grad_fn.next_functions[2] == (None, 0)
    assert torch.autograd.grad(gradient.sum(), start)[0].shape == start.shape
