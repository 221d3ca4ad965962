"""Clipping gradients: the values and texts of real PyTorch 2.13."""

from __future__ import annotations

import pytest

from stridescope.engine import torch
from stridescope.engine.torch.nn.utils import (
    clip_grad_norm_,
    clip_grad_value_,
    parameters_to_vector,
    vector_to_parameters,
)


def parameters(*values):
    made = []
    for value in values:
        made.append(torch.nn.Parameter(torch.zeros(len(value))))
        made[-1].grad = torch.tensor(value)
    return made


def test_the_total_norm_is_returned_and_the_gradients_are_scaled():
    both = parameters([3.0, 4.0], [12.0])
    assert repr(clip_grad_norm_(both, 1.0)) == "tensor(13.)"
    assert [repr(p.grad) for p in both] == ["tensor([0.2308, 0.3077])", "tensor([0.9231])"]


def test_small_gradients_stay():
    one = parameters([3.0, 4.0])
    assert clip_grad_norm_(one, 10.0, norm_type="inf").item() == 4.0
    assert one[0].grad.tolist() == [3.0, 4.0]


def test_no_gradients_have_norm_zero():
    assert clip_grad_norm_([], 1.0).item() == 0.0


def test_an_empty_generator_is_warned_of():
    with pytest.warns(UserWarning, match="`parameters` is an empty generator, no gradient clipping will occur."):
        clip_grad_norm_((p for p in []), 1.0)


def test_nan_is_refused_when_asked():
    with pytest.raises(RuntimeError, match="The total norm of order 2.0 for gradients from `parameters` is non-finite"):
        clip_grad_norm_(parameters([float("nan")]), 1.0, error_if_nonfinite=True)


def test_values_are_held_between_bounds():
    one = parameters([3.0, -4.0, 0.5])
    clip_grad_value_(one, 1.0)
    assert one[0].grad.tolist() == [1.0, -1.0, 0.5]


def test_a_vector_of_all_parameters_and_back():
    both = parameters([3.0, 4.0], [12.0])
    vector = parameters_to_vector(both)
    assert vector.tolist() == [0.0, 0.0, 0.0] and vector.requires_grad
    vector_to_parameters(torch.arange(3.0), both)
    assert [p.tolist() for p in both] == [[0.0, 1.0], [2.0]]
