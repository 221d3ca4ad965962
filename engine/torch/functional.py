"""``torch.functional``: the functions that PyTorch writes in Python."""

from __future__ import annotations

from stridescope.engine.ops import (
    distance,
    flat_places,
    joining,
    linalg_lu,
    norms,
    products,
    searching,
    views_shape,
    views_split,
)

for _module in (views_shape, joining, norms, distance, searching, flat_places, products, linalg_lu, views_split):
    globals().update(_module.FUNCTIONS)
