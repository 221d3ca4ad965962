# ruff: noqa: E501
"""Views and copies: sizes, strides, offset, node and base as PyTorch 2.13 gives them, and its refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stridescope.engine import torch

# fmt: off
LAYOUTS: list[tuple[str, tuple[int, ...], tuple[int, ...], int, str | None, bool]] = [
    ('x.permute(2,0,1)[:,[0,1]]', (6, 2, 5), (1, 6, 12), 0, 'IndexBackward0', False),
    ('x.transpose(0,2)[...,[0,1]]', (6, 5, 2), (2, 12, 1), 0, 'IndexBackward0', False),
    ('x.reshape(-1)', (120,), (1,), 0, 'ViewBackward0', True),
    ('x.reshape(4,30)', (4, 30), (30, 1), 0, 'ViewBackward0', True),
    ('x.transpose(0,1).reshape(-1)', (120,), (1,), 0, 'UnsafeViewBackward0', False),
    ('x.reshape(4,5,6)', (4, 5, 6), (30, 6, 1), 0, 'ViewBackward0', True),
    ('x.view(4,5,6)', (4, 5, 6), (30, 6, 1), 0, 'ViewBackward0', True),
    ('x.flatten()', (120,), (1,), 0, 'ViewBackward0', True),
    ('x.flatten(1)', (4, 30), (30, 1), 0, 'ViewBackward0', True),
    ('x.flatten(1,1)', (4, 5, 6), (30, 6, 1), 0, None, False),
    ('x.unflatten(1,(5,1))', (4, 5, 1, 6), (30, 6, 6, 1), 0, 'ViewBackward0', True),
    ('x.unflatten(1,(-1,5))', (4, 1, 5, 6), (30, 30, 6, 1), 0, 'ViewBackward0', True),
    ('x.movedim(0,2)', (5, 6, 4), (6, 1, 30), 0, 'PermuteBackward0', True),
    ('x.movedim((0,1),(1,2))', (6, 4, 5), (1, 30, 6), 0, 'PermuteBackward0', True),
    ('x.moveaxis(0,1)', (5, 4, 6), (6, 30, 1), 0, 'PermuteBackward0', True),
    ('x.swapaxes(0,1)', (5, 4, 6), (6, 30, 1), 0, 'TransposeBackward0', True),
    ('x.swapdims(0,1)', (5, 4, 6), (6, 30, 1), 0, 'TransposeBackward0', True),
    ('x.narrow(0,1,2)', (2, 5, 6), (30, 6, 1), 30, 'SliceBackward0', True),
    ('x.narrow(0,-1,1)', (1, 5, 6), (30, 6, 1), 90, 'SliceBackward0', True),
    ('x.select(1,-1)', (4, 6), (30, 1), 24, 'SelectBackward0', True),
    ('x.unfold(1,2,1)', (4, 4, 6, 2), (30, 6, 1, 6), 0, 'UnfoldBackward0', True),
    ('x.diagonal()', (6, 4), (1, 36), 0, 'DiagonalBackward0', True),
    ('x.diagonal(1,0,2)', (5, 4), (6, 31), 1, 'DiagonalBackward0', True),
    ('x.diagonal(-1,1,2)', (4, 4), (30, 7), 6, 'DiagonalBackward0', True),
    ('x.diagonal(9)', (6, 0), (1, 36), 0, 'DiagonalBackward0', True),
    ('x.split(2)[1]', (2, 5, 6), (30, 6, 1), 60, 'SplitBackward0', True),
    ('x.split([1,3])[1]', (3, 5, 6), (30, 6, 1), 30, 'SplitWithSizesBackward0', True),
    ('x.chunk(3)[0]', (2, 5, 6), (30, 6, 1), 0, 'SplitBackward0', True),
    ('x.chunk(3,1)[2]', (4, 1, 6), (30, 6, 1), 24, 'SplitBackward0', True),
    ('x.tensor_split(3)[1]', (1, 5, 6), (30, 6, 1), 60, 'SliceBackward0', True),
    ('x.tensor_split((1,2))[1]', (1, 5, 6), (30, 6, 1), 30, 'SliceBackward0', True),
    ('x.tensor_split(torch.tensor([1,2]))[1]', (1, 5, 6), (30, 6, 1), 30, 'SliceBackward0', True),
    ('x.unbind()[1]', (5, 6), (6, 1), 30, 'UnbindBackward0', True),
    ('x.hsplit(5)[0]', (4, 1, 6), (30, 6, 1), 0, 'SliceBackward0', True),
    ('x.vsplit(2)[0]', (2, 5, 6), (30, 6, 1), 0, 'SliceBackward0', True),
    ('x.dsplit(2)[0]', (4, 5, 3), (30, 6, 1), 0, 'SliceBackward0', True),
    ('x.expand(2,4,5,6)', (2, 4, 5, 6), (0, 30, 6, 1), 0, 'ExpandBackward0', True),
    ('x.expand(-1,-1,-1)', (4, 5, 6), (30, 6, 1), 0, 'ExpandBackward0', True),
    ('x[0:1].expand(3,-1,-1)', (3, 5, 6), (0, 6, 1), 0, 'ExpandBackward0', True),
    ('x.broadcast_to((4,5,6))', (4, 5, 6), (30, 6, 1), 0, 'ExpandBackward0', True),
    ('x.expand_as(torch.zeros(1,4,5,6))', (1, 4, 5, 6), (120, 30, 6, 1), 0, 'ExpandBackward0', True),
    ('x.view_as(torch.zeros(20,6))', (20, 6), (6, 1), 0, 'ViewBackward0', True),
    ('x.squeeze()', (4, 5, 6), (30, 6, 1), 0, 'SqueezeBackward0', True),
    ('x.squeeze(0)', (4, 5, 6), (30, 6, 1), 0, 'SqueezeBackward1', True),
    ('x[0:1].squeeze(0)', (5, 6), (6, 1), 0, 'SqueezeBackward1', True),
    ('x[0:1].squeeze((0,1))', (5, 6), (6, 1), 0, 'SqueezeBackward2', True),
    ('x.as_strided((2,2),(1,2))', (2, 2), (1, 2), 0, 'AsStridedBackward0', True),
    ('x.as_strided((2,2),(1,2),3)', (2, 2), (1, 2), 3, 'AsStridedBackward0', True),
    ('x.view(torch.int32)', (4, 5, 6), (30, 6, 1), 0, None, False),
    ('x.view(torch.float64)', (4, 5, 3), (15, 3, 1), 0, None, False),
    ('x.view(torch.float16)', (4, 5, 12), (60, 12, 1), 0, None, False),
    ('x.view(torch.float32)', (4, 5, 6), (30, 6, 1), 0, None, False),
    ('x.double().view(torch.complex64)', (4, 5, 6), (30, 6, 1), 0, None, False),
    ('x.real', (4, 5, 6), (30, 6, 1), 0, None, False),
    ('torch.atleast_1d(x)', (4, 5, 6), (30, 6, 1), 0, None, False),
    ('torch.atleast_3d(torch.tensor(1.))', (1, 1, 1), (1, 1, 1), 0, None, False),
    ('torch.atleast_2d(torch.tensor([1.,2.],requires_grad=True))', (1, 2), (2, 1), 0, 'UnsqueezeBackward0', False),
    ('torch.atleast_3d(torch.ones(2,3,requires_grad=True))', (2, 3, 1), (3, 1, 1), 0, 'UnsqueezeBackward0', False),
    ('x.mT', (4, 6, 5), (30, 1, 6), 0, 'TransposeBackward0', True),
    ('x.adjoint()', (4, 6, 5), (30, 1, 6), 0, 'TransposeBackward0', True),
    ('x[0].adjoint()', (6, 5), (1, 6), 0, 'TransposeBackward0', True),
    ('x.ravel()', (120,), (1,), 0, 'ViewBackward0', True),
    ('x.transpose(0,1).ravel()', (120,), (1,), 0, 'ViewBackward0', False),
    ('x.rot90()', (5, 4, 6), (6, 30, 1), 0, 'Rot90Backward0', False),
    ('x.flip(0)', (4, 5, 6), (30, 6, 1), 0, 'FlipBackward0', False),
    ('x.fliplr()', (4, 5, 6), (30, 6, 1), 0, 'FlipBackward0', False),
    ('x.flipud()', (4, 5, 6), (30, 6, 1), 0, 'FlipBackward0', False),
    ('x.roll(1)', (4, 5, 6), (30, 6, 1), 0, 'RollBackward0', False),
    ('x.roll(1,0)', (4, 5, 6), (30, 6, 1), 0, 'RollBackward0', False),
    ('x.roll((1,2),(0,1))', (4, 5, 6), (30, 6, 1), 0, 'RollBackward0', False),
    ('x.repeat(2,1,1)', (8, 5, 6), (30, 6, 1), 0, 'RepeatBackward0', False),
    ('x.tile(2)', (4, 5, 12), (60, 12, 1), 0, 'RepeatBackward0', False),
    ('x.tile((2,2,2,2))', (2, 8, 10, 12), (960, 120, 12, 1), 0, 'RepeatBackward0', False),
    ('x.repeat_interleave(2)', (240,), (1,), 0, 'ViewBackward0', False),
    ('x.repeat_interleave(2,1)', (4, 10, 6), (60, 6, 1), 0, 'ViewBackward0', False),
    ('x.repeat_interleave(torch.tensor([1,2,0,1]),0)', (4, 5, 6), (30, 6, 1), 0, 'IndexSelectBackward0', False),
    ('torch.cat([x,x])', (8, 5, 6), (30, 6, 1), 0, 'CatBackward0', False),
    ('torch.stack([x,x])', (2, 4, 5, 6), (120, 30, 6, 1), 0, 'StackBackward0', False),
    ('torch.hstack([x,x])', (4, 10, 6), (60, 6, 1), 0, 'CatBackward0', False),
    ('torch.vstack([x,x])', (8, 5, 6), (30, 6, 1), 0, 'CatBackward0', False),
    ('torch.dstack([x,x])', (4, 5, 12), (60, 12, 1), 0, 'CatBackward0', False),
    ('torch.column_stack([x,x])', (4, 10, 6), (60, 6, 1), 0, 'CatBackward0', False),
    ('torch.block_diag(x[0],x[1])', (10, 12), (12, 1), 0, 'BlockDiagBackward0', False),
    ('torch.meshgrid(x[0,0],x[0,1])[1]', (6, 6), (0, 1), 6, 'ExpandBackward0', True),
    ('torch.cartesian_prod(x[0,0],x[0,1])', (36, 2), (2, 1), 0, 'StackBackward0', False),
    ('torch.combinations(x[0,0])', (15, 2), (2, 1), 0, 'StackBackward0', False),
    ('torch.broadcast_tensors(x,x[0])[1]', (4, 5, 6), (0, 6, 1), 0, 'ExpandBackward0', True),
    ('torch.diag(x[0])', (5,), (1,), 0, 'DiagonalBackward0_copy', False),
    ('torch.diag(x[0,0])', (6, 6), (6, 1), 0, 'DiagEmbedBackward0', False),
    ('torch.diag_embed(x)', (4, 5, 6, 6), (180, 36, 6, 1), 0, 'DiagEmbedBackward0', False),
    ('torch.diagflat(x[0])', (30, 30), (30, 1), 0, 'DiagEmbedBackward0', False),
    ('torch.tril(x)', (4, 5, 6), (30, 6, 1), 0, 'TrilBackward0', False),
    ('torch.select_scatter(x,x[0],0,1)', (4, 5, 6), (30, 6, 1), 0, 'SelectScatterBackward0', False),
    ('torch.slice_scatter(x,x[:2],0,0,2)', (4, 5, 6), (30, 6, 1), 0, 'SliceScatterBackward0', False),
    ('torch.diagonal_scatter(x,x.diagonal())', (4, 5, 6), (30, 6, 1), 0, 'DiagonalScatterBackward0', False),
    ('torch.as_strided_scatter(x,x[0,0,:2],(2,),(1,))', (4, 5, 6), (30, 6, 1), 0, 'AsStridedScatterBackward0', False),
    ('x.detach()', (4, 5, 6), (30, 6, 1), 0, None, False),
    ('x.clone()', (4, 5, 6), (30, 6, 1), 0, 'CloneBackward0', False),
    ('x.contiguous()', (4, 5, 6), (30, 6, 1), 0, None, False),
    ('x.transpose(0,1).contiguous()', (5, 4, 6), (24, 6, 1), 0, 'CloneBackward0', False),
    ('x.transpose(0,1).clone()', (5, 4, 6), (6, 30, 1), 0, 'CloneBackward0', False),
    ('x.double()', (4, 5, 6), (30, 6, 1), 0, 'ToCopyBackward0', False),
    ('x.to(torch.float32)', (4, 5, 6), (30, 6, 1), 0, None, False),
    ('x.to(torch.float64)', (4, 5, 6), (30, 6, 1), 0, 'ToCopyBackward0', False),
    ('x.float()', (4, 5, 6), (30, 6, 1), 0, None, False),
    ('x.half()', (4, 5, 6), (30, 6, 1), 0, 'ToCopyBackward0', False),
    ('x.type(torch.float64)', (4, 5, 6), (30, 6, 1), 0, 'ToCopyBackward0', False),
    ('x.type_as(x.double())', (4, 5, 6), (30, 6, 1), 0, 'ToCopyBackward0', False),
    ('x.view(torch.complex64)', (4, 5, 3), (15, 3, 1), 0, None, False),
    ('torch.view_as_real(torch.ones(2,dtype=torch.complex64,requires_grad=True))', (2, 2), (2, 1), 0, 'ViewAsRealBackward0', False),
    ('torch.view_as_complex(torch.ones(2,2,requires_grad=True))', (2,), (1,), 0, 'ViewAsComplexBackward0', False),
    ('torch.ones(2,dtype=torch.complex64,requires_grad=True).conj()', (2,), (1,), 0, 'ConjBackward0', False),
    ('torch.ones(2,dtype=torch.complex64,requires_grad=True).conj().imag', (2,), (2,), 1, 'SelectBackward0', False),
    ('torch.ones(2,dtype=torch.complex64,requires_grad=True).imag', (2,), (2,), 1, 'SelectBackward0', False),
    ('torch.ones(2,dtype=torch.complex64,requires_grad=True).conj().resolve_conj()', (2,), (1,), 0, 'CloneBackward0', False),
    ('torch.ones(2,dtype=torch.complex64,requires_grad=True).conj().clone()', (2,), (1,), 0, 'CloneBackward0', False),
    ('x.unsqueeze(0).contiguous(memory_format=torch.channels_last)', (1, 4, 5, 6), (120, 1, 24, 4), 0, 'CloneBackward0', False),
    ('x.unsqueeze(0).to(memory_format=torch.channels_last)', (1, 4, 5, 6), (120, 1, 24, 4), 0, 'ToCopyBackward0', False),
    ('x.unsqueeze(0).clone(memory_format=torch.channels_last)', (1, 4, 5, 6), (120, 1, 24, 4), 0, 'CloneBackward0', False),
    ('x.narrow_copy(0,0,2)', (2, 5, 6), (30, 6, 1), 0, 'NarrowCopyBackward0', False),
    ('torch.split(x,2,1)[0]', (4, 2, 6), (30, 6, 1), 0, 'SplitBackward0', True),
    ('torch.unsafe_split(x,2)[0]', (2, 5, 6), (30, 6, 1), 0, 'UnsafeSplitBackward0', False),
    ('torch.unsafe_chunk(x,2)[0]', (2, 5, 6), (30, 6, 1), 0, 'UnsafeSplitBackward0', False),
    ('torch.squeeze_copy(x)', (4, 5, 6), (30, 6, 1), 0, 'SqueezeBackward0_copy', False),
    ('torch.view_copy(x,(-1,))', (120,), (1,), 0, 'ViewBackward0_copy', False),
    ('torch.narrow(x,0,torch.tensor(1),2)', (2, 5, 6), (30, 6, 1), 30, 'SliceBackward0', True),
    ('torch.transpose(x,0,1).flatten(0,1)', (20, 6), (6, 1), 0, 'UnsafeViewBackward0', False),
    ('x.sum_to_size(5,6)', (5, 6), (6, 1), 0, 'ViewBackward0', False),
]
ERRORS: list[tuple[str, str, str]] = [
    ('x.flatten(2,1)', 'RuntimeError', 'flatten() has invalid args: start_dim cannot come after end_dim'),
    ('x.unflatten(1,(2,2))', 'RuntimeError', "unflatten: Provided sizes [2, 2] don't multiply up to the size of dim 1 (5) in the input tensor"),
    ('x.movedim((0,0),(1,2))', 'RuntimeError', 'movedim: repeated dim in `source` ([0, 0])'),
    ('x.narrow(0,3,3)', 'RuntimeError', 'start (3) + length (3) exceeds dimension size (4).'),
    ('x.narrow(0,1,-2)', 'RuntimeError', 'narrow(): length must be non-negative.'),
    ('x.select(0,7)', 'IndexError', 'select(): index 7 out of range for tensor of size [4, 5, 6] at dimension 0'),
    ('x.unfold(1,7,1)', 'RuntimeError', 'maximum size for tensor at dimension 1 is 5 but size is 7'),
    ('x.unfold(1,2,0)', 'RuntimeError', 'step is 0 but must be > 0'),
    ('x.diagonal(0,1,1)', 'RuntimeError', 'diagonal dimensions cannot be identical 1, 1'),
    ('x.split([1,2])[1]', 'RuntimeError', "split_with_sizes expects split_sizes to sum exactly to 4 (input tensor's size at dimension 0), but got split_sizes=[1, 2]"),
    ('x.split(-1)', 'RuntimeError', 'split expects split_size be non-negative, but got split_size=-1'),
    ('x.split(0)', 'RuntimeError', 'split_size can only be 0 if dimension size is 0, but got dimension size of 4'),
    ('x.chunk(0)', 'RuntimeError', 'chunk expects `chunks` to be greater than 0, got: 0'),
    ('x.tensor_split(0)', 'RuntimeError', 'number of sections must be larger than 0, got 0'),
    ('x.hsplit(2)', 'RuntimeError', 'torch.hsplit attempted to split along dimension 1, but the size of the dimension 5 is not divisible by the split_size 2!'),
    ('x.expand(3,5,6)', 'RuntimeError', 'The expanded size of the tensor (3) must match the existing size (4) at non-singleton dimension 0.  Target sizes: [3, 5, 6].  Tensor sizes: [4, 5, 6]'),
    ('x.expand(6)', 'RuntimeError', 'expand(torch.FloatTensor{[4, 5, 6]}, size=[6]): the number of sizes provided (1) must be greater or equal to the number of dimensions in the tensor (3)'),
    ('x.expand(-1,4,5,6)', 'RuntimeError', "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension 0"),
    ('x.unsqueeze(4)', 'IndexError', 'Dimension out of range (expected to be in range of [-4, 3], but got 4)'),
    ('x.as_strided((2,2),(1,-2),3)', 'RuntimeError', 'as_strided: Negative strides are not supported at the moment, got strides: [1, -2]'),
    ('x.as_strided((2,),(1,2))', 'RuntimeError', 'mismatch in length of strides and shape'),
    ('x.as_strided((200,),(1,))', 'RuntimeError', 'setStorage: sizes [200], strides [1], storage offset 0, and itemsize 4 requiring a storage size of 800 are out of bounds for storage of size 480'),
    ('x.as_strided((2,),(1,),-1)', 'RuntimeError', 'Tensor: invalid storage offset -1'),
    ('x.view(7)', 'RuntimeError', "shape '[7]' is invalid for input of size 120"),
    ('x.view(-1,-1)', 'RuntimeError', 'only one dimension can be inferred'),
    ('x.view(-1,7)', 'RuntimeError', "shape '[-1, 7]' is invalid for input of size 120"),
    ('x.view(-2)', 'RuntimeError', 'invalid shape dimension -2 at index 0 of shape [-2]'),
    ('x.transpose(0,1).view(-1)', 'RuntimeError', "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead."),
    ('x.transpose(0,5)', 'IndexError', 'Dimension out of range (expected to be in range of [-3, 2], but got 5)'),
    ('x.permute(0,1)', 'RuntimeError', 'permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = 3 is not equal to len(dims) = 2'),
    ('x.permute(0,0,1)', 'RuntimeError', 'permute(): duplicate dims are not allowed.'),
    ('x.permute(0,1,7)', 'IndexError', 'Dimension out of range (expected to be in range of [-3, 2], but got 7)'),
    ('x.t()', 'RuntimeError', 't() expects a tensor with <= 2 dimensions, but self is 3D'),
    ('x[...,:5].view(torch.float64)', 'RuntimeError', 'self.size(-1) must be divisible by 2 to view Float as Double (different element sizes), but got 5'),
    ('x.imag', 'RuntimeError', 'imag is not implemented for tensors with non-complex dtypes.'),
    ('x.flip(0,0)', 'RuntimeError', 'dim 0 appears multiple times in the list of dims'),
    ('x.flip(5)', 'IndexError', 'Dimension out of range (expected to be in range of [-3, 2], but got 5)'),
    ('x.roll((1,2),0)', 'RuntimeError', 'shifts and dimensions must align. shifts: 2, dims:1'),
    ('x.repeat(2)', 'RuntimeError', 'Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor'),
    ('torch.cat([x,x],5)', 'IndexError', 'Dimension out of range (expected to be in range of [-3, 2], but got 5)'),
    ('torch.cat([x,x[0]])', 'RuntimeError', 'Tensors must have same number of dimensions: got 3 and 2'),
    ('torch.cat([x,x[:,:2]])', 'RuntimeError', 'Sizes of tensors must match except in dimension 0. Expected size 5 but got size 2 for tensor number 1 in the list.'),
    ('torch.cat([])', 'ValueError', 'torch.cat(): expected a non-empty list of Tensors'),
    ('torch.stack([x,x[0]])', 'RuntimeError', 'stack expects each tensor to be equal size, but got [4, 5, 6] at entry 0 and [5, 6] at entry 1'),
    ('torch.stack([])', 'RuntimeError', 'stack expects a non-empty TensorList'),
    ('torch.view_as_complex(torch.ones(2,3))', 'RuntimeError', 'Tensor must have a last dimension of size 2'),
    ('torch.ones(2,dtype=torch.complex64,requires_grad=True).H', 'RuntimeError', 'tensor.H is only supported on matrices (2-D tensors). Got 1-D tensor.'),
    ('torch.movedim(x,0,7)', 'IndexError', 'Dimension out of range (expected to be in range of [-3, 2], but got 7)'),
    ('x.swapaxes(0,7)', 'IndexError', 'Dimension out of range (expected to be in range of [-3, 2], but got 7)'),
]
# fmt: on


@pytest.mark.parametrize(("expression", "shape", "stride", "offset", "node", "is_view"), LAYOUTS)
def test_layout(
    expression: str,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    node: str | None,
    is_view: bool,
    layout_of: Callable[[str], Any],
) -> None:
    assert layout_of(expression) == (shape, stride, offset, node, is_view)


@pytest.mark.parametrize(("expression", "kind", "text"), ERRORS)
def test_error(expression: str, kind: str, text: str, refusal_of: Callable[[str], Any]) -> None:
    assert refusal_of(expression) == (kind, text)


def test_a_write_through_a_view_shows_in_the_base() -> None:
    base = torch.zeros(3, 4)
    base.t()[1].fill_(2)
    base.diagonal()[0] = 5
    assert base.tolist() == [[5.0, 2.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]]
    assert base._version == 2


def test_as_strided_gradient_counts_every_reading() -> None:
    x = torch.arange(6.0, requires_grad=True)
    x.as_strided((3, 2), (1, 1)).sum().backward()
    assert x.grad.tolist() == [1.0, 2.0, 2.0, 1.0, 0.0, 0.0]


def test_a_storage_that_is_resized_stays_shared() -> None:
    x = torch.arange(4.0)
    view = x[:2]
    x.untyped_storage().resize_(32)
    x[0] = 9
    assert view[0].item() == 9
    assert x.untyped_storage().nbytes() == 32


@pytest.mark.parametrize("name", ["t_", "squeeze_", "unsqueeze_", "transpose_", "swapaxes_"])
def test_in_place_views_change_the_tensor_itself(name: str) -> None:
    x = torch.ones(2, 1)
    arguments = {"unsqueeze_": (0,), "transpose_": (0, 1), "swapaxes_": (0, 1)}.get(name, ())
    address = x.data_ptr()
    assert getattr(x, name)(*arguments) is x
    assert x.data_ptr() == address
    assert tuple(x.shape) == tuple(getattr(torch.ones(2, 1), name[:-1])(*arguments).shape)
