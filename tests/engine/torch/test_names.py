"""Names of the torch module that are here, and names of which it says that they are not."""

from __future__ import annotations

import pytest

from stridescope.engine import torch
from stridescope.engine.torch import _not_yet


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
