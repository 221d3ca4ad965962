"""Arguments that an op with a derivative has none for, and refuses where they require gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stridescope.engine.autograd.formula import Derivative
from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.dispatch.schema import Schema
from stridescope.engine.tensor import Tensor

# Only floating arguments can require gradients; indices, masks and the like are not worth a look at every call.
FROZEN = frozenset(
    ("weight", "pos_weight", "running_mean", "running_var", "target", "atol", "rtol", "random_samples")
)  # fmt: skip


def refusing(schema: Schema, derivative: Derivative | None, run: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel, which raises RuntimeError first where such an argument requires gradients."""
    listed = () if derivative is None else derivative.inputs
    names = [a.name for a in schema.arguments]
    places = [(i, n) for i, n in enumerate(names) if derivative is not None and n in FROZEN and n not in listed]
    if not places:
        return run

    def refused(*args: Any) -> Any:
        if grad_mode.enabled:
            for place, name in places:
                if isinstance(args[place], Tensor) and args[place]._requires_grad:
                    raise RuntimeError(
                        f"The function '{schema.name}' is not differentiable with respect to argument '{name}'. This "
                        "input cannot have requires_grad True."
                    )
        return run(*args)

    return refused
