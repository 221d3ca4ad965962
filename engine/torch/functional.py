"""``torch.functional``: the functions that PyTorch writes in Python."""

from __future__ import annotations

from stridescope.engine.ops import (
    FUNCTIONS,
    distance,
    indexed,
    joining,
    linalg_lu,
    norms,
    products,
    searching,
    views_shape,
)

for _module in (views_shape, joining, norms, distance, searching, indexed, products, linalg_lu):
    globals().update(_module.FUNCTIONS)
globals().update({name: FUNCTIONS["torch"][name] for name in ("split",) if name in FUNCTIONS["torch"]})
