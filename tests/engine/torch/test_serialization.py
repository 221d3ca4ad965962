# ruff: noqa: E501
"""``torch.save`` and ``torch.load``: what is kept, what is refused, and files of a real PyTorch."""

from __future__ import annotations

import base64
import io
import pickle
import zlib
from typing import Any

import pytest

from stridescope.engine import torch

# Written by PyTorch 2.13: torch.save({"x": x[1], "y": x.t(), "p": Parameter(torch.ones(2)), "k": (1, "a")}, …), where
# x = torch.arange(6.).reshape(2, 3).
FROM_PYTORCH = r"""c-o~^OK;Oa5Z>5{V_ZldlqN0EQhEteN#ndr1*rn^0Ut<%kSZ>b>zLZAn`E3#p-4!PPzn{7g2WYZ>_6alaNx#`1LB1E1BhLlrnb|hJVx1UZ14A2&&;MQvq6M-9`(f-nm~%B>c)<?R8z2$Xl|KODS{q)qQg7`6kiVzz!M0lxIqw!Y8xA7OQ>4fM%yrJRjk!p4Xe775`c-v*TZCSi>y>OHDDcxAejvX-*;{b5VQ%C5L#!+tTx-g$sC68n#{^<7kD|)g){rA+AvK`#YUsv67E?w&C+Uj3>6C?T&utchO-qoXEW_WL?_BRs|WRvZgY*U$%wEqdoU&kWOfh6_jL-Jz;M0-lQygg7Y6L8saVRkhBZrosUv0^B0`k#GZ<o&pXtIh^*ZBlU&L^!0+(Of7qc&5t^!wV)E3Ok0sEH%SNC9{ohZv;zBoVmir%E7JTOmDw9v~_;!(reR&aGkvs&b>NToSny81$-LLa_=eon>d7%Vh{^2b8I^H)_&W3#@k)v;7cpQd$E<TCb7AHz3>NH9YUjH6=Dz{W1t8Z_lnY2{yZkHR!CHZ|&@d-KaQM^w0>9wO+Lrz@6{Qt8Hj7;soSMe?;uK4f&rc)v;=MGwBdj*$nkQyeXN9f?vYj{aPqYIllM?_iDlL<RVvdZTEir`M~q{J*|}v_O?VzT13odj4lo>bL;yt+q7FAQkvjp=UtVs7a;7Um8hfbE23mWK-#!xSY!;v#I5bn8{_*g;aLAkj><ig+eBmwcF(9kGpT<#7EqA8K7o+KHa@K*5}-Rj{4E=28?=;hXFLGyZbD-nrOz`I1C!nxqcpZBaC}^-ne*r4d{ovt2W|+PqE0?JASOY0=?KnKUVZ(-8D4o!N!8fU$K6$JGHakJ-fgs7hPHAxW%IqWv};;yl)<1oVgHkW`d*tgy?qIxpq$95a(ccd%d&v7fH*gMg"""


def there_and_back(value: Any, **options: Any) -> Any:
    """What a file gives back."""
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **options)


def test_values_layout_and_grad_are_kept() -> None:
    x = torch.arange(12.0).reshape(3, 4).t()
    back = there_and_back({"x": x, "leaf": torch.ones(2, requires_grad=True), "half": torch.ones(2).bfloat16()})
    assert back["x"].stride() == (1, 4)
    assert torch.equal(back["x"], x)
    assert back["leaf"].requires_grad
    assert back["half"].dtype is torch.bfloat16


def test_tensors_that_share_still_share() -> None:
    whole = torch.arange(1000)
    back = there_and_back({"a": whole[:3], "b": whole[2:4]})
    back["a"][2] = -5
    assert back["b"].tolist() == [-5, 3]
    assert back["b"].storage_offset() == 2
    assert back["a"].untyped_storage().nbytes() == 8000


def test_a_file_of_pytorch_is_read() -> None:
    back = torch.load(io.BytesIO(zlib.decompress(base64.b85decode(FROM_PYTORCH))))
    assert back["x"].tolist() == [3.0, 4.0, 5.0]
    assert back["y"].stride() == (1, 3)
    assert type(back["p"]).__name__ == "Parameter"
    assert back["k"] == (1, "a")


class Mine:
    """A class that no weights-only file may name."""

    value = 3


def test_other_classes_need_a_word_of_trust() -> None:
    file = io.BytesIO()
    torch.save(Mine(), file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(file)
    assert there_and_back(Mine(), weights_only=False).value == 3
    with torch.serialization.safe_globals([Mine]):
        assert there_and_back(Mine()).value == 3
