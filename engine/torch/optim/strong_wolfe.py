"""A line search that ends where the strong Wolfe conditions hold: enough descent, and a slope flat enough."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from stridescope.engine import torch
from stridescope.engine.tensor import Tensor

DESCENT, FLATNESS, SMALLEST = 1e-4, 0.9, 1e-9


class Point(NamedTuple):
    """What is known at a step ``t`` along the direction."""

    t: Any
    loss: Any
    grad: Tensor
    slope: Any


def strong_wolfe(
    evaluate: Callable[[Any], tuple[float, Tensor]],
    t: Any,
    direction: Tensor,
    loss: float,
    grad: Tensor,
    slope: Tensor,
    most: int,
) -> tuple[float, Tensor, Any, int]:
    """Return loss, gradient and step where the search ended, and how often ``evaluate`` was called."""
    start = Point(0, loss, grad.clone(memory_format=torch.contiguous_format), slope)
    search = _LineSearch(evaluate, direction, start, most)
    bracket = search.bracket(t)
    found = bracket[0] if len(bracket) == 1 else search.zoom(bracket)
    return found.loss, found.grad, found.t, search.evaluations


class _LineSearch:
    def __init__(self, evaluate: Callable[[Any], Any], direction: Tensor, start: Point, most: int) -> None:
        self.evaluate, self.direction, self.start, self.most = evaluate, direction, start, most
        self.reach = direction.abs().max()
        self.evaluations = 0

    def at(self, t: Any) -> Point:
        loss, grad = self.evaluate(t)
        self.evaluations += 1
        return Point(t, loss, grad.clone(memory_format=torch.contiguous_format), grad.dot(self.direction))

    def _rises(self, point: Point) -> bool:
        start = self.start
        return bool(point.loss > (start.loss + DESCENT * point.t * start.slope))

    def _flat(self, point: Point) -> bool:
        return bool(abs(point.slope) <= -FLATNESS * self.start.slope)

    def bracket(self, t: Any) -> list[Point]:
        """One point that satisfies the conditions, or two with such a point between them."""
        before, now = self.start, self.at(t)
        for turn in range(self.most):
            if self._rises(now) or (turn > 1 and now.loss >= before.loss):
                return [before, now]
            if self._flat(now):
                return [now]
            if now.slope >= 0:
                return [before, now]
            bounds = (now.t + 0.01 * (now.t - before.t), now.t * 10)
            before, now = now, self.at(_cubic(before, now, bounds))
        return [self.start, now]

    def zoom(self, bracket: list[Point]) -> Point:
        """Narrow the bracket until its lower end satisfies the conditions or it gets too small."""
        low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
        stuck = False
        while self.evaluations - 1 < self.most:
            if abs(bracket[1].t - bracket[0].t) * self.reach < SMALLEST:
                break
            t, stuck = _inside(_cubic(*bracket), [point.t for point in bracket], stuck)  # type: ignore[arg-type]
            now = self.at(t)
            if self._rises(now) or now.loss >= bracket[low].loss:
                bracket[high] = now
                low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
                continue
            done = self._flat(now)
            if not done and now.slope * (bracket[high].t - bracket[low].t) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = now
            if done:
                break
        return bracket[low]


def _inside(t: Any, ends: list[Any], stuck: bool) -> tuple[Any, bool]:
    """Keep a trial step away from the ends of the bracket, unless it is the first that comes close to one."""
    margin = 0.1 * (max(ends) - min(ends))
    if not min(max(ends) - t, t - min(ends)) < margin:
        return t, False
    if not (stuck or t >= max(ends) or t <= min(ends)):
        return t, True
    nearer_top = abs(t - max(ends)) < abs(t - min(ends))
    return (max(ends) - margin if nearer_top else min(ends) + margin), False


def _cubic(a: Point, b: Point, bounds: tuple[Any, Any] | None = None) -> Any:
    """Where the cubic through two points and their slopes has its minimum, within bounds."""
    low, high = bounds or ((a.t, b.t) if a.t <= b.t else (b.t, a.t))
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1**2 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    d2 = square.sqrt()
    if a.t <= b.t:
        lowest = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    else:
        lowest = a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2))
    return min(max(lowest, low), high)
