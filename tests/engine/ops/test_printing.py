# ruff: noqa: E501
"""The printed form of tensors, character by character; the expected texts are PyTorch 2.13's."""

from __future__ import annotations

from typing import Any

import pytest

from stridescope.engine import torch

# fmt: off
PRINTED: list[tuple[str, str]] = [
    ('torch.tensor([1.0, 2.5])', 'tensor([1.0000, 2.5000])'),
    ('torch.tensor([1.0, 2.0])', 'tensor([1., 2.])'),
    ('torch.tensor([1e-9, 1.0])', 'tensor([1.0000e-09, 1.0000e+00])'),
    ('torch.tensor([1e10, 1.0])', 'tensor([1.0000e+10, 1.0000e+00])'),
    ('torch.tensor([float("nan"), 1.0, float("inf")])', 'tensor([nan, 1., inf])'),
    ('torch.tensor([float("nan"), 1.5, -float("inf")])', 'tensor([   nan, 1.5000,   -inf])'),
    ('torch.tensor([0.0, float("nan")])', 'tensor([0., nan])'),
    ('torch.tensor([-0.0, 0.0])', 'tensor([-0., 0.])'),
    ('torch.tensor([1001.0, 1.0])', 'tensor([1.0010e+03, 1.0000e+00])'),
    ('torch.tensor([1000.5, 1.0])', 'tensor([1.0005e+03, 1.0000e+00])'),
    ('torch.tensor([1e8, 1e8 + 64])', 'tensor([1.0000e+08, 1.0000e+08])'),
    ('torch.tensor([99999.0, 0.5])', 'tensor([9.9999e+04, 5.0000e-01])'),
    ('torch.tensor(3)', 'tensor(3)'),
    ('torch.tensor(3.14159)', 'tensor(3.1416)'),
    ('torch.tensor(True)', 'tensor(True)'),
    ('torch.tensor([True, False])', 'tensor([ True, False])'),
    ('torch.tensor([1, -20, 300])', 'tensor([  1, -20, 300])'),
    ('torch.tensor([1, 2], dtype=torch.int8)', 'tensor([1, 2], dtype=torch.int8)'),
    ('torch.tensor([1, 2], dtype=torch.uint8)', 'tensor([1, 2], dtype=torch.uint8)'),
    ('torch.tensor([1, 2], dtype=torch.int32)', 'tensor([1, 2], dtype=torch.int32)'),
    ('torch.tensor([1.5, 2], dtype=torch.float16)', 'tensor([1.5000, 2.0000], dtype=torch.float16)'),
    ('torch.tensor([1.5, 2], dtype=torch.bfloat16)', 'tensor([1.5000, 2.0000], dtype=torch.bfloat16)'),
    ('torch.tensor([1.5, 2], dtype=torch.float64)', 'tensor([1.5000, 2.0000], dtype=torch.float64)'),
    ('torch.tensor([1 + 2j, 3.5 - 4.25j])', 'tensor([1.0000+2.0000j, 3.5000-4.2500j])'),
    ('torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex128)', 'tensor([1.+2.j, 3.-4.j], dtype=torch.complex128)'),
    ('torch.tensor([complex(0.0, -0.0), 1e6 + 1j])', 'tensor([      0.-0.j, 1000000.+1.j])'),
    ('torch.tensor([complex("nan"), 1 + 1j])', 'tensor([nan+0.j, 1.+1.j])'),
    ('torch.tensor([])', 'tensor([])'),
    ('torch.zeros(0, 3)', 'tensor([], size=(0, 3))'),
    ('torch.zeros(0, 3, dtype=torch.int64)', 'tensor([], size=(0, 3), dtype=torch.int64)'),
    ('torch.zeros(0, dtype=torch.float64)', 'tensor([], dtype=torch.float64)'),
    ('torch.zeros(2, 0, 3, dtype=torch.bool)', 'tensor([], size=(2, 0, 3), dtype=torch.bool)'),
    ('torch.arange(6).reshape(2, 3)', 'tensor([[0, 1, 2],\n        [3, 4, 5]])'),
    ('torch.arange(24.0).reshape(2, 3, 4)', 'tensor([[[ 0.,  1.,  2.,  3.],\n         [ 4.,  5.,  6.,  7.],\n         [ 8.,  9., 10., 11.]],\n\n        [[12., 13., 14., 15.],\n         [16., 17., 18., 19.],\n         [20., 21., 22., 23.]]])'),
    ('torch.arange(16).reshape(2, 2, 2, 2)', 'tensor([[[[ 0,  1],\n          [ 2,  3]],\n\n         [[ 4,  5],\n          [ 6,  7]]],\n\n\n        [[[ 8,  9],\n          [10, 11]],\n\n         [[12, 13],\n          [14, 15]]]])'),
    ('torch.arange(1001)', 'tensor([   0,    1,    2,  ...,  998,  999, 1000])'),
    ('torch.arange(1001.0)', 'tensor([   0.,    1.,    2.,  ...,  998.,  999., 1000.])'),
    ('torch.arange(2000).reshape(40, 50)', 'tensor([[   0,    1,    2,  ...,   47,   48,   49],\n        [  50,   51,   52,  ...,   97,   98,   99],\n        [ 100,  101,  102,  ...,  147,  148,  149],\n        ...,\n        [1850, 1851, 1852,  ..., 1897, 1898, 1899],\n        [1900, 1901, 1902,  ..., 1947, 1948, 1949],\n        [1950, 1951, 1952,  ..., 1997, 1998, 1999]])'),
    ('torch.arange(2002.0).reshape(2, 1001)', 'tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 9.9800e+02, 9.9900e+02,\n         1.0000e+03],\n        [1.0010e+03, 1.0020e+03, 1.0030e+03,  ..., 1.9990e+03, 2.0000e+03,\n         2.0010e+03]])'),
    ('torch.arange(8000).reshape(20, 20, 20)', 'tensor([[[   0,    1,    2,  ...,   17,   18,   19],\n         [  20,   21,   22,  ...,   37,   38,   39],\n         [  40,   41,   42,  ...,   57,   58,   59],\n         ...,\n         [ 340,  341,  342,  ...,  357,  358,  359],\n         [ 360,  361,  362,  ...,  377,  378,  379],\n         [ 380,  381,  382,  ...,  397,  398,  399]],\n\n        [[ 400,  401,  402,  ...,  417,  418,  419],\n         [ 420,  421,  422,  ...,  437,  438,  439],\n         [ 440,  441,  442,  ...,  457,  458,  459],\n         ...,\n         [ 740,  741,  742,  ...,  757,  758,  759],\n         [ 760,  761,  762,  ...,  777,  778,  779],\n         [ 780,  781,  782,  ...,  797,  798,  799]],\n\n        [[ 800,  801,  802,  ...,  817,  818,  819],\n         [ 820,  821,  822,  ...,  837,  838,  839],\n         [ 840,  841,  842,  ...,  857,  858,  859],\n         ...,\n         [1140, 1141, 1142,  ..., 1157, 1158, 1159],\n         [1160, 1161, 1162,  ..., 1177, 1178, 1179],\n         [1180, 1181, 1182,  ..., 1197, 1198, 1199]],\n\n        ...,\n\n        [[6800, 6801, 6802,  ..., 6817, 6818, 6819],\n         [6820, 6821, 6822,  ..., 6837, 6838, 6839],\n         [6840, 6841, 6842,  ..., 6857, 6858, 6859],\n         ...,\n         [7140, 7141, 7142,  ..., 7157, 7158, 7159],\n         [7160, 7161, 7162,  ..., 7177, 7178, 7179],\n         [7180, 7181, 7182,  ..., 7197, 7198, 7199]],\n\n        [[7200, 7201, 7202,  ..., 7217, 7218, 7219],\n         [7220, 7221, 7222,  ..., 7237, 7238, 7239],\n         [7240, 7241, 7242,  ..., 7257, 7258, 7259],\n         ...,\n         [7540, 7541, 7542,  ..., 7557, 7558, 7559],\n         [7560, 7561, 7562,  ..., 7577, 7578, 7579],\n         [7580, 7581, 7582,  ..., 7597, 7598, 7599]],\n\n        [[7600, 7601, 7602,  ..., 7617, 7618, 7619],\n         [7620, 7621, 7622,  ..., 7637, 7638, 7639],\n         [7640, 7641, 7642,  ..., 7657, 7658, 7659],\n         ...,\n         [7940, 7941, 7942,  ..., 7957, 7958, 7959],\n         [7960, 7961, 7962,  ..., 7977, 7978, 7979],\n         [7980, 7981, 7982,  ..., 7997, 7998, 7999]]])'),
    ('torch.arange(30)', 'tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])'),
    ('torch.arange(30.0) / 7', 'tensor([0.0000, 0.1429, 0.2857, 0.4286, 0.5714, 0.7143, 0.8571, 1.0000, 1.1429,\n        1.2857, 1.4286, 1.5714, 1.7143, 1.8571, 2.0000, 2.1429, 2.2857, 2.4286,\n        2.5714, 2.7143, 2.8571, 3.0000, 3.1429, 3.2857, 3.4286, 3.5714, 3.7143,\n        3.8571, 4.0000, 4.1429])'),
    ('torch.tensor([1.0], requires_grad=True)', 'tensor([1.], requires_grad=True)'),
    ('torch.tensor([1.0], requires_grad=True) * 2', 'tensor([2.], grad_fn=<MulBackward0>)'),
    ('torch.tensor([[1.0] * 9], requires_grad=True) * 2', 'tensor([[2., 2., 2., 2., 2., 2., 2., 2., 2.]], grad_fn=<MulBackward0>)'),
    ('(torch.tensor([1.0], requires_grad=True) * 2).double()', 'tensor([2.], dtype=torch.float64, grad_fn=<ToCopyBackward0>)'),
    ('torch.tensor([1.5]).expand(3)', 'tensor([1.5000, 1.5000, 1.5000])'),
    ('torch.tensor([[1.0, 2.0], [3.0, 4.0]]).t()', 'tensor([[1., 3.],\n        [2., 4.]])'),
    ('torch.tensor([1 + 2j]).conj()', 'tensor([1.-2.j])'),
    ('torch.tensor([123456789.0])', 'tensor([1.2346e+08])'),
    ('torch.tensor([0.1, 0.22, 0.333])', 'tensor([0.1000, 0.2200, 0.3330])'),
    ('torch.tensor([1e-4, 1.0])', 'tensor([1.0000e-04, 1.0000e+00])'),
    ('torch.tensor([9e-5, 0.01])', 'tensor([9.0000e-05, 1.0000e-02])'),
    ('torch.tensor([1e-38, 1e38])', 'tensor([1.0000e-38, 1.0000e+38])'),
    ('torch.tensor([2.0**53, 1.0], dtype=torch.float64)', 'tensor([9.0072e+15, 1.0000e+00], dtype=torch.float64)'),
    ('torch.tensor([65504.0, 1.0], dtype=torch.float16)', 'tensor([6.5504e+04, 1.0000e+00], dtype=torch.float16)'),
    ('torch.Size([1, 2])', 'torch.Size([1, 2])'),
    ('torch.Size([])', 'torch.Size([])'),
    ('torch.float32', 'torch.float32'),
    ('torch.device("cpu")', "device(type='cpu')"),
    ('torch.device("cuda:1")', "device(type='cuda', index=1)"),
    ('torch.strided', 'torch.strided'),
    ('torch.channels_last', 'torch.channels_last'),
    ('torch.finfo(torch.float32)', 'finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=float32)'),
    ('torch.finfo(torch.bfloat16)', 'finfo(resolution=0.01, min=-3.38953e+38, max=3.38953e+38, eps=0.0078125, smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=bfloat16)'),
    ('torch.iinfo(torch.uint8)', 'iinfo(min=0, max=255, dtype=uint8)'),
    ('torch.tensor([1, 2, 3, 4], dtype=torch.int16).untyped_storage()', ' 1\n 0\n 2\n 0\n 3\n 0\n 4\n 0\n[torch.storage.UntypedStorage(device=cpu) of size 8]'),
]
WITH_OPTIONS: list[tuple[dict[str, Any], str, str]] = [
    ({'precision': 2}, 'torch.tensor([1.23456, 2.0])', 'tensor([1.23, 2.00])'),
    ({'precision': 8}, 'torch.tensor([1.23456, 2.0])', 'tensor([1.23456001, 2.00000000])'),
    ({'threshold': 5}, 'torch.arange(10)', 'tensor([0, 1, 2,  ..., 7, 8, 9])'),
    ({'threshold': 5, 'edgeitems': 1}, 'torch.arange(12).reshape(3, 4)', 'tensor([[ 0,  ...,  3],\n        ...,\n        [ 8,  ..., 11]])'),
    ({'linewidth': 20}, 'torch.arange(12.0)', 'tensor([ 0.,  1.,\n         2.,  3.,\n         4.,  5.,\n         6.,  7.,\n         8.,  9.,\n        10., 11.])'),
    ({'sci_mode': True}, 'torch.tensor([1.0, 2.5])', 'tensor([1.0000e+00, 2.5000e+00])'),
    ({'sci_mode': False}, 'torch.tensor([1e-9, 1.0])', 'tensor([0.0000, 1.0000])'),
    ({'profile': "short"}, 'torch.arange(1001.0)', 'tensor([   0.,    1.,  ...,  999., 1000.])'),
    ({'profile': "full"}, 'torch.arange(20.0)', 'tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,\n        14., 15., 16., 17., 18., 19.])'),
    ({'threshold': 2, 'edgeitems': 0}, 'torch.arange(6).reshape(2, 3)', 'tensor([...], size=(2, 3))'),
    ({'linewidth': 40}, 'torch.tensor([1.0, 2.0], requires_grad=True, dtype=torch.float64)', 'tensor([1., 2.], dtype=torch.float64,\n       requires_grad=True)'),
]
# fmt: on


@pytest.mark.parametrize(("expression", "text"), PRINTED, ids=[case[0] for case in PRINTED])
def test_text(expression: str, text: str) -> None:
    assert repr(eval(expression, {"torch": torch})) == text


@pytest.mark.parametrize(("options", "expression", "text"), WITH_OPTIONS)
def test_text_with_options(options: dict[str, Any], expression: str, text: str) -> None:
    with torch.printoptions(**options):
        assert str(eval(expression, {"torch": torch})) == text


def test_options_are_given_back() -> None:
    before = torch.get_printoptions()
    with torch.printoptions(precision=1, edgeitems=9):
        assert torch.get_printoptions() != before
    assert torch.get_printoptions() == before


def test_a_zero_dim_tensor_formats_as_its_number() -> None:
    assert f"{torch.tensor(3.14159):.2f}" == "3.14"
    assert f"{torch.tensor(7):03d}" == "007"
    with pytest.raises(TypeError, match="unsupported format string"):
        format(torch.zeros(2), ".2f")


def test_a_subclass_shows_its_name() -> None:
    class Mine(torch.Tensor):
        pass

    assert repr(torch.ones(2).as_subclass(Mine)) == "Mine([1., 1.])"
