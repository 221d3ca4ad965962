"""Names of the torch module that are here, and names of which it says that they are not."""

from __future__ import annotations

import pytest

from stridescope.engine import torch
from stridescope.engine.torch import _not_yet
from stridescope.engine.torch._methods_only import METHODS_ONLY


@pytest.mark.parametrize("name", _not_yet.DTYPES)
def test_dtypes_that_are_not_here_say_so(name: str) -> None:
    assert not hasattr(torch, name)
    with pytest.raises(NotImplementedError, match=rf"^torch\.{name} is not in Stridescope yet$"):
        getattr(torch, name)


def test_modules_of_devices() -> None:
    assert torch.get_device_module("cpu") is torch.cpu
    assert torch.get_device_module(torch.device("cuda", 0)) is torch.cuda


def test_configuration_is_text_for_people() -> None:
    assert torch.__version__ in torch.__config__.show()
    assert f"get_num_threads() : {torch.get_num_threads()}\n" in torch.__config__.parallel_info()


@pytest.mark.parametrize("name", sorted(METHODS_ONLY))
def test_what_is_no_function_in_pytorch_is_none_here(name: str) -> None:
    assert not hasattr(torch, name)
    assert hasattr(torch.Tensor, name) == name.endswith("_")


def test_sparse_adam_refuses_complex_parameters() -> None:
    real, other = torch.zeros(1, requires_grad=True), torch.zeros(1, dtype=torch.complex64, requires_grad=True)
    with pytest.raises(ValueError, match=r"Complex params at indices \[\[0, 1\]\]: SparseAdam does not support"):
        torch.optim.SparseAdam([real, other])
