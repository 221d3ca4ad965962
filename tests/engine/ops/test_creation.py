# ruff: noqa: E501
"""Factories and ``torch.tensor``: dtypes, shapes and values as PyTorch 2.13 gives them, and its refusals."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from stridescope.engine import torch

# fmt: off
MADE: list[tuple[str, str, tuple[int, ...], str]] = [
    ('torch.arange(0,1,.3)', 'torch.float32', (4,), '[0.0, 0.30000001192092896, 0.6000000238418579, 0.8999999761581421]'),
    ('torch.arange(3.,dtype=torch.int32)', 'torch.int32', (3,), '[0, 1, 2]'),
    ('torch.arange(0.5,5.5,dtype=torch.int64)', 'torch.int64', (5,), '[0, 1, 2, 3, 4]'),
    ('torch.arange(torch.tensor(3))', 'torch.int64', (3,), '[0, 1, 2]'),
    ('torch.arange(1,2.5,.5)', 'torch.float32', (3,), '[1.0, 1.5, 2.0]'),
    ('torch.arange(True)', 'torch.int64', (1,), '[0]'),
    ('torch.arange(3,dtype=torch.float16)', 'torch.float16', (3,), '[0.0, 1.0, 2.0]'),
    ('torch.arange(start=1,end=3)', 'torch.int64', (2,), '[1, 2]'),
    ('torch.arange(end=3)', 'torch.int64', (3,), '[0, 1, 2]'),
    ('torch.arange(10,0,-3)', 'torch.int64', (4,), '[10, 7, 4, 1]'),
    ('torch.range(0,3)', 'torch.float32', (4,), '[0.0, 1.0, 2.0, 3.0]'),
    ('torch.linspace(0,1,5)', 'torch.float32', (5,), '[0.0, 0.25, 0.5, 0.75, 1.0]'),
    ('torch.linspace(0,10,4,dtype=torch.int64)', 'torch.int64', (4,), '[0, 3, 6, 10]'),
    ('torch.linspace(0,1,1)', 'torch.float32', (1,), '[0.0]'),
    ('torch.linspace(0,1,0)', 'torch.float32', (0,), '[]'),
    ('torch.linspace(0,1j,3)', 'torch.complex64', (3,), '[0j, 0.5j, 1j]'),
    ('torch.linspace(torch.tensor(0.),1,3)', 'torch.float32', (3,), '[0.0, 0.5, 1.0]'),
    ('torch.linspace(5,-5,3,dtype=torch.int8)', 'torch.int8', (3,), '[5, 0, -5]'),
    ('torch.logspace(0,2,3)', 'torch.float32', (3,), '[1.0, 10.0, 100.0]'),
    ('torch.logspace(0,2,3,base=2)', 'torch.float32', (3,), '[1.0, 2.0, 4.0]'),
    ('torch.logspace(0,2,3,dtype=torch.int64)', 'torch.int64', (3,), '[1, 10, 100]'),
    ('torch.logspace(0,2,0)', 'torch.float32', (0,), '[]'),
    ('torch.eye(2)', 'torch.float32', (2, 2), '[[1.0, 0.0], [0.0, 1.0]]'),
    ('torch.eye(2,3,dtype=torch.int64)', 'torch.int64', (2, 3), '[[1, 0, 0], [0, 1, 0]]'),
    ('torch.tril_indices(2,3)', 'torch.int64', (2, 3), '[[0, 1, 1], [0, 0, 1]]'),
    ('torch.tril_indices(3,3,-1)', 'torch.int64', (2, 3), '[[1, 2, 2], [0, 0, 1]]'),
    ('torch.triu_indices(2,3,1)', 'torch.int64', (2, 3), '[[0, 0, 1], [1, 2, 2]]'),
    ('torch.full((2,),True)', 'torch.bool', (2,), '[True, True]'),
    ('torch.full((2,),3)', 'torch.int64', (2,), '[3, 3]'),
    ('torch.full((2,),3.)', 'torch.float32', (2,), '[3.0, 3.0]'),
    ('torch.full((2,),1j)', 'torch.complex64', (2,), '[1j, 1j]'),
    ('torch.full((2,),3,dtype=torch.bool)', 'torch.bool', (2,), '[True, True]'),
    ('torch.full((2,),1.5,dtype=torch.int64)', 'torch.int64', (2,), '[1, 1]'),
    ('torch.full((2,),torch.tensor(2))', 'torch.int64', (2,), '[2, 2]'),
    ('torch.full((),1)', 'torch.int64', (), '1'),
    ('torch.full_like(x,3)', 'torch.float32', (2, 3), '[[3.0, 3.0, 3.0], [3.0, 3.0, 3.0]]'),
    ('torch.zeros(2,3,requires_grad=True)', 'torch.float32', (2, 3), '[[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]'),
    ('torch.zeros([2,2])', 'torch.float32', (2, 2), '[[0.0, 0.0], [0.0, 0.0]]'),
    ('torch.zeros(())', 'torch.float32', (), '0.0'),
    ('torch.zeros(2,dtype=int)', 'torch.int64', (2,), '[0, 0]'),
    ('torch.zeros(2,dtype=float)', 'torch.float64', (2,), '[0.0, 0.0]'),
    ('torch.zeros(torch.Size([2]))', 'torch.float32', (2,), '[0.0, 0.0]'),
    ('torch.zeros(torch.tensor(2))', 'torch.float32', (2,), '[0.0, 0.0]'),
    ('torch.zeros(size=(2,))', 'torch.float32', (2,), '[0.0, 0.0]'),
    ('x.new_zeros(2,3)', 'torch.float32', (2, 3), '[[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]'),
    ('x.new_zeros((2,),dtype=torch.int8)', 'torch.int8', (2,), '[0, 0]'),
    ('x.new_ones(2)', 'torch.float32', (2,), '[1.0, 1.0]'),
    ('x.new_full((2,),True)', 'torch.float32', (2,), '[1.0, 1.0]'),
    ('x.int().new_full((2,),1.5)', 'torch.int32', (2,), '[1, 1]'),
    ('x.new_tensor([1,2])', 'torch.float32', (2,), '[1.0, 2.0]'),
    ('x.new_zeros(())', 'torch.float32', (), '0.0'),
    ('torch.scalar_tensor(3)', 'torch.float32', (), '3.0'),
    ('torch.scalar_tensor(3,dtype=torch.int64)', 'torch.int64', (), '3'),
    ('torch.tensor([1,2.5,True])', 'torch.float32', (3,), '[1.0, 2.5, 1.0]'),
    ('torch.tensor([1,1j])', 'torch.complex64', (2,), '[(1+0j), 1j]'),
    ('torch.tensor([True,2])', 'torch.int64', (2,), '[1, 2]'),
    ('torch.tensor([])', 'torch.float32', (0,), '[]'),
    ('torch.tensor([[]])', 'torch.float32', (1, 0), '[[]]'),
    ('torch.tensor([[],[]])', 'torch.float32', (2, 0), '[[], []]'),
    ('torch.tensor([[[]],[[]]])', 'torch.float32', (2, 1, 0), '[[[]], [[]]]'),
    ('torch.tensor(())', 'torch.float32', (0,), '[]'),
    ('torch.tensor(-2**63)', 'torch.int64', (), '-9223372036854775808'),
    ('torch.tensor([-1],dtype=torch.uint8)', 'torch.uint8', (1,), '[255]'),
    ('torch.tensor([1.7],dtype=torch.int64)', 'torch.int64', (1,), '[1]'),
    ('torch.tensor([1e40])', 'torch.float32', (1,), '[inf]'),
    ('torch.tensor(x)', 'torch.float32', (2, 3), '[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]'),
    ('torch.tensor([x[0,0],x[1,1]])', 'torch.float32', (2,), '[0.0, 4.0]'),
    ('torch.tensor([torch.tensor(1),torch.tensor(2)])', 'torch.int64', (2,), '[1, 2]'),
    ('torch.tensor(np.array([1,2],dtype=np.int32))', 'torch.int32', (2,), '[1, 2]'),
    ('torch.tensor(np.float32(2))', 'torch.float32', (), '2.0'),
    ('torch.tensor([np.float32(2)])', 'torch.float32', (1,), '[2.0]'),
    ('torch.tensor([np.array([1,2]),np.array([3,4])])', 'torch.int64', (2, 2), '[[1, 2], [3, 4]]'),
    ('torch.tensor(range(3))', 'torch.int64', (3,), '[0, 1, 2]'),
    ('torch.tensor((1,2),dtype=torch.bool)', 'torch.bool', (2,), '[True, True]'),
    ('torch.tensor([1.],requires_grad=True)', 'torch.float32', (1,), '[1.0]'),
    ('torch.tensor(bytearray(b"ab"))', 'torch.int64', (2,), '[97, 98]'),
    ('torch.tensor(data=[1])', 'torch.int64', (1,), '[1]'),
    ('torch.tensor([1],device="cpu")', 'torch.int64', (1,), '[1]'),
    ('torch.tensor(3,dtype=torch.complex64)', 'torch.complex64', (), '(3+0j)'),
    ('torch.tensor([0.1],dtype=torch.float16)', 'torch.float16', (1,), '[0.0999755859375]'),
    ('torch.as_tensor([1,2])', 'torch.int64', (2,), '[1, 2]'),
    ('torch.as_tensor(x,dtype=torch.float64)', 'torch.float64', (2, 3), '[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]'),
    ('torch.as_tensor(np.ones(2))', 'torch.float64', (2,), '[1.0, 1.0]'),
    ('torch.as_tensor(3)', 'torch.int64', (), '3'),
    ('torch.asarray([1,2])', 'torch.int64', (2,), '[1, 2]'),
    ('torch.asarray(np.ones(2))', 'torch.float64', (2,), '[1.0, 1.0]'),
    ('torch.asarray(3.)', 'torch.float32', (), '3.0'),
    ('torch.asarray(b"abcd",dtype=torch.uint8)', 'torch.uint8', (4,), '[97, 98, 99, 100]'),
    ('torch.asarray([1.],requires_grad=True)', 'torch.float32', (1,), '[1.0]'),
    ('torch.frombuffer(bytearray(b"abcdefgh"),dtype=torch.int32)', 'torch.int32', (2,), '[1684234849, 1751606885]'),
    ('torch.frombuffer(b"abcdefgh",dtype=torch.int32)', 'torch.int32', (2,), '[1684234849, 1751606885]'),
    ('torch.frombuffer(bytearray(b"abcdefgh"),dtype=torch.int32,count=1,offset=4)', 'torch.int32', (1,), '[1751606885]'),
    ('torch.Tensor([1,2])', 'torch.float32', (2,), '[1.0, 2.0]'),
    ('torch.Tensor()', 'torch.float32', (0,), '[]'),
    ('torch.Tensor(x)', 'torch.float32', (2, 3), '[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]'),
    ('torch.FloatTensor([1,2])', 'torch.float32', (2,), '[1.0, 2.0]'),
    ('torch.LongTensor([1,2])', 'torch.int64', (2,), '[1, 2]'),
    ('torch.LongTensor([1.5])', 'torch.int64', (1,), '[1]'),
    ('torch.IntTensor((1,2))', 'torch.int32', (2,), '[1, 2]'),
    ('torch.complex(torch.ones(2),torch.zeros(2))', 'torch.complex64', (2,), '[(1+0j), (1+0j)]'),
    ('torch.zeros_like(x,dtype=torch.int64)', 'torch.int64', (2, 3), '[[0, 0, 0], [0, 0, 0]]'),
    ('torch.empty(3,pin_memory=False)', 'torch.float32', (3,), '[0.0, 0.0, 0.0]'),
    ('torch.zeros(2,layout=torch.strided)', 'torch.float32', (2,), '[0.0, 0.0]'),
    ('torch.from_numpy(np.arange(3.))', 'torch.float64', (3,), '[0.0, 1.0, 2.0]'),
]
REFUSED: list[tuple[str, str, str]] = [
    ('torch.arange(5,1)', 'RuntimeError', 'upper bound and lower bound inconsistent with step sign'),
    ('torch.arange(1,5,0)', 'RuntimeError', 'step must be nonzero'),
    ('torch.arange(1.,5,-1)', 'RuntimeError', 'upper bound and lower bound inconsistent with step sign'),
    ("torch.arange(0,float('inf'))", 'RuntimeError', 'unsupported range: 0 -> inf'),
    ("torch.arange(float('nan'))", 'RuntimeError', 'unsupported range: 0 -> nan'),
    ('torch.arange(5,dtype=torch.bool)', 'NotImplementedError', '"arange_cpu" not implemented for \'Bool\''),
    ('torch.arange(2,dtype=torch.bool)', 'NotImplementedError', '"arange_cpu" not implemented for \'Bool\''),
    ('torch.arange(0,1,.3,dtype=torch.int64)', 'ValueError', 'step must be nonzero'),
    ('torch.arange(1,4,.7,dtype=torch.int64)', 'ValueError', 'step must be nonzero'),
    ('torch.arange(1j)', 'RuntimeError', 'value cannot be converted to type double without overflow'),
    ('torch.linspace(0,1,-1)', 'RuntimeError', 'number of steps must be non-negative'),
    ('torch.linspace(torch.tensor([0.]),1,3)', 'RuntimeError', 'linspace only supports 0-dimensional start and end tensors, but got start with 1 dimension(s).'),
    ('torch.linspace(0,1,3,dtype=torch.bool)', 'NotImplementedError', '"linspace_cpu" not implemented for \'Bool\''),
    ('torch.eye(-1)', 'RuntimeError', 'n must be greater or equal to 0, got -1'),
    ('torch.eye(2,-1)', 'RuntimeError', 'm must be greater or equal to 0, got -1'),
    ('torch.tril_indices(-1,2)', 'RuntimeError', 'row must be non-negative, got-1'),
    ('torch.tril_indices(2,2,dtype=torch.float32)', 'NotImplementedError', '"tril_indices" not implemented for \'Float\''),
    ('torch.full((2,),300,dtype=torch.uint8)', 'RuntimeError', 'value cannot be converted to type uint8_t without overflow'),
    ('torch.full((-2,),1)', 'RuntimeError', 'Trying to create tensor with negative dimension -2: [-2]'),
    ('torch.full(2,1)', 'TypeError', "full(): argument 'size' (position 1) must be tuple of ints, not int"),
    ('torch.full_like(x,1j)', 'RuntimeError', 'value cannot be converted to type float without overflow'),
    ('torch.zeros(2,dtype=torch.int64,requires_grad=True)', 'RuntimeError', 'Only Tensors of floating point and complex dtype can require gradients'),
    ('torch.zeros((2,),3)', 'TypeError', 'zeros() takes 1 positional argument but 2 were given'),
    ('torch.zeros(2.5)', 'TypeError', "zeros(): argument 'size' (position 1) must be tuple of ints, not float"),
    ('torch.zeros()', 'TypeError', 'zeros() missing 1 required positional arguments: "size"'),
    ('torch.zeros(2,dtype=np.float32)', 'TypeError', "zeros(): argument 'dtype' must be torch.dtype, not type"),
    ('torch.empty_strided((2,3),(1,))', 'RuntimeError', 'dimensionality of sizes (2) must match dimensionality of strides (1)'),
    ('torch.empty_strided((2,3),(-1,2))', 'RuntimeError', 'Storage size calculation overflowed with sizes=[2, 3] and strides=[-1, 2]'),
    ('torch.empty_permuted((2,3),(1,1)).stride()', 'RuntimeError', 'Duplicate dim not allowed'),
    ('torch.tensor([[1,2],[3]])', 'ValueError', 'expected sequence of length 2 at dim 1 (got 1)'),
    ('torch.tensor([[1,2],3])', 'TypeError', 'not a sequence'),
    ('torch.tensor([1,[2]])', 'TypeError', "'list' object cannot be interpreted as an integer"),
    ('torch.tensor("a")', 'TypeError', "new(): invalid data type 'str'"),
    ('torch.tensor(["a"])', 'ValueError', "too many dimensions 'str'"),
    ('torch.tensor(None)', 'RuntimeError', 'Could not infer dtype of NoneType'),
    ('torch.tensor([None])', 'RuntimeError', 'Could not infer dtype of NoneType'),
    ('torch.tensor({})', 'RuntimeError', 'Could not infer dtype of dict'),
    ('torch.tensor(object())', 'RuntimeError', 'Could not infer dtype of object'),
    ('torch.tensor(2**63)', 'ValueError', 'Overflow when unpacking long long'),
    ('torch.tensor(2**64)', 'ValueError', 'Overflow when unpacking long long'),
    ('torch.tensor([300],dtype=torch.uint8)', 'RuntimeError', 'value cannot be converted to type uint8 without overflow'),
    ("torch.tensor([float('nan')],dtype=torch.int64)", 'RuntimeError', 'value cannot be converted to type int64 without overflow'),
    ('torch.tensor([1j],dtype=torch.float32)', 'TypeError', 'must be real number, not complex'),
    ('torch.tensor([x[0],x[1]])', 'ValueError', 'only one element tensors can be converted to Python scalars'),
    ('torch.tensor(np.array(["a"]))', 'TypeError', "can't convert np.ndarray of type numpy.str_. The only supported types are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."),
    ('torch.tensor([1,2],requires_grad=True)', 'RuntimeError', 'Only Tensors of floating point and complex dtype can require gradients'),
    ('torch.tensor()', 'TypeError', 'tensor() missing 1 required positional arguments: "data"'),
    ('torch.tensor(1,2)', 'TypeError', 'tensor() takes 1 positional argument but 2 were given'),
    ('torch.tensor([1,2],dtype="float")', 'TypeError', "tensor(): argument 'dtype' must be torch.dtype, not str"),
    ('torch.tensor(b"ab")', 'TypeError', "new(): invalid data type 'bytes'"),
    ('torch.tensor({1,2})', 'RuntimeError', 'Could not infer dtype of set'),
    ('torch.tensor(x for x in range(3))', 'RuntimeError', 'Could not infer dtype of generator'),
    ('torch.tensor([1],device="foo")', 'RuntimeError', 'Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, hpu, mtia, privateuseone device type at start of device string: foo'),
    ('torch.tensor([10**30])', 'ValueError', 'Overflow when unpacking long long'),
    ('torch.asarray(x,dtype=torch.int32,copy=False)', 'ValueError', "can't alias tensor with dtype 'Float' into dtype 'Int'."),
    ('torch.frombuffer(bytearray(b""),dtype=torch.int32)', 'ValueError', 'both buffer length (0) and count (-1) must not be 0'),
    ('torch.frombuffer(bytearray(b"abc"),dtype=torch.int32)', 'ValueError', 'buffer length (3 bytes) after offset (0 bytes) must be a multiple of element size (4)'),
    ('torch.frombuffer(bytearray(b"abcdefgh"),dtype=torch.int32,count=3)', 'ValueError', 'requested buffer length (3 * 4 bytes) after offset (0 bytes) must not be greater than actual buffer length (8 bytes)'),
    ('torch.frombuffer(bytearray(b"abcdefgh"),dtype=torch.int32,offset=9)', 'ValueError', 'offset (9 bytes) must be non-negative and no greater than buffer length (8 bytes) minus 1'),
    ('torch.Tensor(2.5)', 'TypeError', 'new(): data must be a sequence (got float)'),
    ('torch.Tensor([[1,2],[3]])', 'ValueError', 'expected sequence of length 2 at dim 1 (got 1)'),
    ('torch.ones_like(3)', 'TypeError', "ones_like(): argument 'input' (position 1) must be Tensor, not int"),
]
# fmt: on


def evaluated(expression: str) -> torch.Tensor:
    x = torch.arange(6.0).reshape(2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(expression, {"torch": torch, "x": x, "np": np})


@pytest.mark.parametrize(("expression", "kind", "shape", "values"), MADE)
def test_made(expression: str, kind: str, shape: tuple[int, ...], values: str) -> None:
    result = evaluated(expression)
    assert (repr(result.dtype), tuple(result.shape), repr(result.tolist())) == (kind, shape, values)


@pytest.mark.parametrize(("expression", "kind", "text"), REFUSED)
def test_refused(expression: str, kind: str, text: str) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the type is part of the data
        evaluated(expression)
    assert (type(caught.value).__name__, str(caught.value).split("\n")[0]) == (kind, text)


def test_numpy_and_tensors_share_memory() -> None:
    array = np.arange(6.0).reshape(2, 3).T
    tensor = torch.from_numpy(array)
    tensor[0, 1] = 100
    assert array[0, 1] == 100
    assert tensor.stride() == (1, 3)
    back = tensor.numpy()
    back[2, 0] = -1
    assert tensor[2, 0].item() == -1
    assert torch.from_numpy(back).data_ptr() == tensor.data_ptr()


def test_default_dtype_is_what_floats_become() -> None:
    try:
        torch.set_default_dtype(torch.float64)
        assert torch.tensor(1.0).dtype is torch.float64
        assert torch.zeros(1).dtype is torch.float64
        assert torch.tensor(1j).dtype is torch.complex128
    finally:
        torch.set_default_dtype(torch.float32)


def test_memory_formats() -> None:
    x = torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert x.stride() == (60, 1, 15, 3)
    assert torch.empty_like(x).stride() == x.stride()
    assert x.clone().is_contiguous(memory_format=torch.channels_last)
    assert x.contiguous().stride() == (60, 20, 5, 1)
