"""Parameter groups, state, hooks and errors of ``torch.optim.Optimizer``."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest

import stridescope.engine.torch as torch


def parameter(*values: float) -> Any:
    return torch.tensor(values or (1.0,), requires_grad=True)


def stepped(optimizer: Any, *params: Any) -> None:
    for param in params:
        param.grad = torch.ones_like(param)
    optimizer.step()


def test_groups_take_defaults_and_keep_their_own_options() -> None:
    first, second = parameter(), parameter()
    optimizer = torch.optim.SGD([{"params": [first]}, {"params": second, "lr": 0.5}], lr=0.1)
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.5]
    stepped(optimizer, first, second)
    assert (first.item(), second.item()) == (pytest.approx(0.9), 0.5)


def test_a_saved_state_goes_on_as_the_original_would() -> None:
    param, twin = parameter(1.0, 2.0), parameter(1.0, 2.0)
    original, restored = torch.optim.Adam([param], lr=0.1), torch.optim.Adam([twin], lr=0.5)
    stepped(original, param)
    twin.data.copy_(param.data)
    restored.load_state_dict(copy.deepcopy(original.state_dict()))
    assert restored.param_groups[0]["lr"] == 0.1
    stepped(original, param)
    stepped(restored, twin)
    assert torch.equal(param, twin)
    assert list(original.state_dict()["state"][0]) == ["step", "exp_avg", "exp_avg_sq"]


def test_state_dict_of_other_groups_is_refused() -> None:
    one = torch.optim.SGD([parameter()], lr=0.1)
    two = torch.optim.SGD([{"params": [parameter()]}, {"params": [parameter()]}], lr=0.1)
    with pytest.raises(ValueError, match="different number of parameter groups"):
        one.load_state_dict(two.state_dict())
    bigger = torch.optim.SGD([parameter(), parameter()], lr=0.1)
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        one.load_state_dict(bigger.state_dict())


def test_hooks_run_around_the_step_in_order() -> None:
    seen: list[str] = []
    param = parameter()
    optimizer = torch.optim.SGD([param], lr=0.1)
    optimizer.register_step_pre_hook(lambda *_: seen.append("before"))
    handle = optimizer.register_step_post_hook(lambda *_: seen.append("after"))
    stepped(optimizer, param)
    handle.remove()
    stepped(optimizer, param)
    assert seen == ["before", "after", "before"]


def test_zero_grad_forgets_or_fills() -> None:
    param = parameter()
    optimizer = torch.optim.SGD([param], lr=0.1)
    param.grad = torch.ones(1)
    optimizer.zero_grad(set_to_none=False)
    assert param.grad.tolist() == [0.0]
    optimizer.zero_grad()
    assert param.grad is None


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: torch.optim.SGD([], lr=0.1), ValueError, "optimizer got an empty parameter list"),
        (lambda: torch.optim.SGD(torch.ones(1), lr=0.1), TypeError, "an iterable of Tensors or dicts, but got"),
        (lambda: torch.optim.SGD([1.0], lr=0.1), TypeError, "one of the params is float"),
        (lambda: torch.optim.SGD([parameter() * 2], lr=0.1), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda: torch.optim.SGD([parameter()], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: torch.optim.SGD([parameter()], nesterov=True), ValueError, "Nesterov momentum requires"),
        (lambda: torch.optim.Adam([parameter()], betas=(1.0, 0.9)), ValueError, "beta parameter at index 0: 1.0"),
        (lambda: torch.optim.Adam([parameter()], fused=True, foreach=True), RuntimeError, "cannot be `True` together"),
        (lambda: torch.optim.Muon([parameter()]), ValueError, "Muon only supports 2D parameters"),
    ],
)
def test_bad_arguments_have_pytorchs_words(make: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        make()


def test_a_parameter_in_two_groups_is_refused() -> None:
    param = parameter()
    optimizer = torch.optim.SGD([param], lr=0.1)
    with pytest.raises(ValueError, match="some parameters appear in more than one parameter group"):
        optimizer.add_param_group({"params": param})


def test_a_schedule_before_the_first_step_warns() -> None:
    optimizer = torch.optim.SGD([parameter()], lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        schedule.step()


def test_plateau_waits_and_reduces() -> None:
    optimizer = torch.optim.SGD([parameter()], lr=1.0)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, factor=0.5)
    rates = []
    for loss in (1.0, 0.9, 0.9, 0.9, 0.9, 0.9):
        schedule.step(loss)
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == [1.0, 1.0, 1.0, 0.5, 0.5, 0.25]


def test_sequential_schedule_changes_at_its_milestone() -> None:
    optimizer = torch.optim.SGD([parameter()], lr=1.0)
    kinds = torch.optim.lr_scheduler
    parts = [kinds.ConstantLR(optimizer, 0.1, total_iters=9), kinds.ExponentialLR(optimizer, 0.5)]
    schedule = kinds.SequentialLR(optimizer, parts, milestones=[2])
    rates = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(4):
            rates.append(schedule.get_last_lr()[0])
            optimizer.step()
            schedule.step()
    assert rates == pytest.approx([0.1, 0.1, 1.0, 0.5])


def test_averaged_model_is_the_mean_of_what_it_saw() -> None:
    model = torch.nn.Linear(1, 1, bias=False)
    averaged = torch.optim.swa_utils.AveragedModel(model)
    for value in (1.0, 2.0, 6.0):
        model.weight.data.fill_(value)
        averaged.update_parameters(model)
    assert averaged.module.weight.item() == pytest.approx(3.0)
    assert averaged.n_averaged.item() == 3
