"""Sums over any dims of any strided array agree with NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from stridescope.engine import torch


@pytest.mark.parametrize("seed", range(200))
def test_sum_of_a_strided_array(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ndim = int(rng.integers(1, 6))
    array = rng.random(rng.integers(1, 8, ndim)).astype(np.float32).transpose(rng.permutation(ndim))
    array = array[tuple(slice(None, None, int(rng.integers(1, 3))) for _ in range(ndim))]
    dims = tuple(sorted(int(d) for d in rng.choice(ndim, rng.integers(1, ndim + 1), replace=False)))
    ours = torch.from_numpy(array).sum(dims)
    assert np.allclose(ours.numpy(), array.sum(dims), rtol=1e-4)
