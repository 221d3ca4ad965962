"""Forward-mode differentiation: what carries a tangent, and whose it is."""

from __future__ import annotations

from typing import Any

import pytest

from stridescope.engine import torch

fw: Any = torch.autograd.forward_ad
x, d = torch.tensor([0.2, 0.5]), torch.tensor([1.0, 2.0])


def tangent(function: Any) -> Any:
    with fw.dual_level():
        return fw.unpack_dual(function(fw.make_dual(x, d))).tangent


def test_tangents_are_pushed_through_ops_and_views() -> None:
    assert torch.allclose(tangent(torch.sin), d * x.cos())
    assert tangent(lambda a: a.view(2, 1)[1]).tolist() == [2.0]
    assert tangent(lambda a: a.detach()) is None


def test_a_flat_function_has_a_tangent_of_zeros() -> None:
    assert tangent(torch.floor).tolist() == tangent(torch.sign).tolist() == [0.0, 0.0]


def test_a_clone_has_a_tangent_of_its_own() -> None:
    assert tangent(lambda a: a.clone().mul_(3)).tolist() == [3.0, 6.0]
    assert d.tolist() == [1.0, 2.0]


def test_there_must_be_a_level_to_leave() -> None:
    with pytest.raises(RuntimeError, match="Dual level must be a positive number"):
        fw.exit_dual_level()
