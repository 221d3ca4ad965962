"""``torch.functional``: the functions that PyTorch writes in Python."""

from __future__ import annotations

from stridescope.engine.ops import (
    distance,
    indexed,
    joining,
    linalg_lu,
    norms,
    products,
    searching,
    views_shape,
    views_split,
)

for _module in (views_shape, joining, norms, distance, searching, indexed, products, linalg_lu, views_split):
    globals().update(_module.FUNCTIONS)
