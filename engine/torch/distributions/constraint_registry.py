"""Which map leads from all real numbers to a constraint: ``biject_to`` one to one, ``transform_to`` as is easiest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stridescope.engine.torch.distributions import constraints, transforms
from stridescope.engine.torch.distributions.constraints import Constraint

Factory = Callable[[Any], Any]


class ConstraintRegistry:
    """Maps by the class of a constraint; call it with a constraint to get the map."""

    def __init__(self) -> None:
        self._registry: dict[type[Constraint], Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Say how a kind of constraint is reached; without ``factory`` it decorates one."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, Constraint)):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Any:
        """The map to a constraint; raises NotImplementedError when none was registered."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _both(constraint: Any, factory: Factory) -> None:
    biject_to.register(constraint, factory)
    transform_to.register(constraint, factory)


def _independent(registry: ConstraintRegistry) -> Factory:
    return lambda c: transforms.IndependentTransform(registry(c.base), c.dims)


def _above(constraint: Any) -> Any:
    moved = transforms.AffineTransform(constraint.bounds["lower_bound"], 1)
    return transforms.ComposeTransform([transforms.ExpTransform(), moved])


def _below(constraint: Any) -> Any:
    turned = transforms.AffineTransform(constraint.bounds["upper_bound"], -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), turned])


def _between(constraint: Any) -> Any:
    low, high = constraint.bounds["lower_bound"], constraint.bounds["upper_bound"]
    if isinstance(low, (int, float)) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


_both(constraints.real, lambda constraint: transforms.identity_transform)
_both(constraints.positive, _above)
_both(constraints.nonnegative, _above)
_both(constraints.less_than(0), _below)
_both(constraints.unit_interval, _between)
_both(constraints.half_open_interval(0, 1), _between)
_both(constraints.corr_cholesky, lambda constraint: transforms.CorrCholeskyTransform())
for _registry in (biject_to, transform_to):
    _registry.register(constraints.real_vector, _independent(_registry))
biject_to.register(constraints.simplex, lambda constraint: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda constraint: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda constraint: transforms.LowerCholeskyTransform())
transform_to.register(constraints.positive_definite, lambda constraint: transforms.PositiveDefiniteTransform())
transform_to.register(constraints.positive_semidefinite, lambda constraint: transforms.PositiveDefiniteTransform())
for _registry in (biject_to, transform_to):
    _registry.register(
        type(constraints.cat([constraints.real])),
        lambda c, to=_registry: transforms.CatTransform([to(each) for each in c.cseq], c.dim, c.lengths),  # type: ignore[misc]
    )
    _registry.register(
        type(constraints.stack([constraints.real])),
        lambda c, to=_registry: transforms.StackTransform([to(each) for each in c.cseq], c.dim),  # type: ignore[misc]
    )
ConstraintRegistry.__module__ = "torch.distributions.constraint_registry"
