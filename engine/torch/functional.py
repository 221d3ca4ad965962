"""``torch.functional``: the functions that PyTorch writes in Python."""

from __future__ import annotations

from stridescope.engine.ops import FUNCTIONS, indexed, joining, linalg_lu, norms, products, searching, views_shape

for _module in (views_shape, joining, norms, searching, indexed, products, linalg_lu):
    globals().update(_module.FUNCTIONS)
globals().update({name: FUNCTIONS["torch"][name] for name in ("cdist", "split") if name in FUNCTIONS["torch"]})
