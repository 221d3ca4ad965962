"""Parameters of a user's subclass of Tensor, and norms of nothing; the right answers are PyTorch 2.13's."""

from __future__ import annotations

from typing import Any

import pytest

import stridescope.engine.torch as torch


class Tagged(torch.Tensor):
    """A subclass that does nothing of its own."""


def tagged() -> Any:
    return torch.nn.Parameter(torch.ones(2).as_subclass(Tagged))


def test_the_class_is_kept() -> None:
    parameter = tagged()
    assert type(parameter) is Tagged and isinstance(parameter, torch.nn.Parameter)
    assert parameter.requires_grad and parameter.is_leaf
    assert repr(parameter) == "Parameter(Tagged([1., 1.], requires_grad=True))"
    assert not isinstance(parameter + 1, torch.nn.Parameter) and not isinstance(torch.ones(2), torch.nn.Parameter)


def test_a_module_has_it_and_trains_it() -> None:
    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = tagged()

    module = Scaled()
    assert [name for name, _ in module.named_parameters()] == ["weight"]
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    (module.weight * 2).sum().backward()
    optimizer.step()
    assert module.weight.tolist() == [0, 0]
    module.double()
    assert type(module.weight) is Tagged and isinstance(module.weight, torch.nn.Parameter)


def test_a_class_that_detach_loses_is_refused() -> None:
    class Lost(torch.Tensor):
        def detach(self) -> Any:
            return torch.ones(2)

    with pytest.raises(RuntimeError, match=r"^Creating a Parameter from an instance of type Lost requires that detach"):
        torch.nn.Parameter(torch.ones(2).as_subclass(Lost))


@pytest.mark.parametrize(("shape", "is_nan"), [((2, 4, 0), True), ((2, 4, 0, 3), True), ((0, 4, 2), False)])
def test_the_weight_of_a_group_norm_of_nothing(shape: tuple[int, ...], is_nan: bool) -> None:
    norm = torch.nn.GroupNorm(2, 4)
    norm(torch.ones(shape)).sum().backward()
    assert norm.weight.grad.isnan().tolist() == [is_nan] * 4
    assert norm.bias.grad.tolist() == [0.0] * 4
