"""``torch.testing``: comparing tensors, and making random ones for tests."""

from __future__ import annotations

from stridescope.engine.torch._not_yet import missing_from
from stridescope.engine.torch.testing._comparison import assert_close
from stridescope.engine.torch.testing._creation import make_tensor

__all__ = ["assert_close", "make_tensor"]
__getattr__ = missing_from("torch.testing")
