"""Random programs of ops of every dtype: promotion, reductions, shapes, indexing, out=, in-place forms and errors.

Every choice depends on shapes, dtypes and the seed alone, never on values, so that two torches that agree see the same
program. A result that two right kernels may round differently is looked at and dropped: what stays is exact, and no
later comparison, sorting or rounding can tip over.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from typing import Any

from observations import plain

Step = Callable[["OpProgram"], Any]
# The steps by family; programs of the family "calls" take those of "ops" too.
STEPS: dict[str, list[tuple[Step, int]]] = {"ops": [], "calls": []}
FLOATS = ["float32", "float64", "float16", "bfloat16"]
COMPLEX = ["complex64", "complex128"]
INTEGERS = ["int64", "int32", "int16", "int8", "uint8"]
DTYPES = [*FLOATS, *COMPLEX, *INTEGERS, "bool"]
COMMON = ["float32", "float32", "float64", "int64", "bool"]
SHAPES = [(), (), (1,), (3,), (2, 3), (3, 2), (1, 3), (3, 1), (2, 1, 2), (2, 3, 4), (0,), (2, 0), (1, 1), (1, 2, 3, 2)]
MOST = 96  # elements of a tensor that stays


def step(weight: int = 1, family: str = "ops") -> Callable[[Step], Step]:
    """Register a kind of step; ``weight`` says how often it is picked."""

    def register(function: Step) -> Step:
        STEPS[family].append((function, weight))
        return function

    return register


class Inexact:
    """A result whose last digits are free: observed with a tolerance, and not used further."""

    def __init__(self, value: Any) -> None:
        self.value = value


class OpProgram:
    """One program at work: its random choices, its tensors by name, and what has been observed."""

    def __init__(self, torch: Any, seed: int, family: str = "ops") -> None:
        self.steps = [*STEPS["ops"], *(STEPS["calls"] if family == "calls" else ())]
        self.torch, self.random = torch, random.Random(seed)
        self.tensors: dict[str, Any] = {}
        self.seen: list[Any] = []
        self.words: list[str] = []
        self.count = 0
        for _ in range(4):
            self.add(made(self))

    # ---- choices ---------------------------------------------------------------------------------------------------

    def pick(self, values: Any) -> Any:
        picked = self.random.choice(list(values))
        if not callable(picked):
            self.words.append(picked if isinstance(picked, str) else repr(picked))
        return picked

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def tensor(self, kinds: list[str] | None = None, most: int = 9) -> Any:
        """One of the tensors, more often a young one; of these dtypes and of at most so many dims if there is one."""
        fitting = [n for n, t in self.tensors.items() if (kinds is None or self.kind(t) in kinds) and t.dim() <= most]
        names = fitting or list(self.tensors)
        self.words.append(names[-1 - int(len(names) * self.random.random() ** 2)])
        return self.tensors[self.words[-1]]

    def target(self) -> Any:
        """A tensor to write into; a copy where memory is shared within it, for then the order of writing matters."""
        tensor = self.tensor()
        return tensor.clone() if overlaps(tensor) else tensor

    def kind(self, tensor: Any) -> str:
        return str(tensor.dtype).removeprefix("torch.")

    def dtype(self, kinds: list[str]) -> Any:
        return getattr(self.torch, self.pick(kinds))

    def number(self) -> Any:
        return self.pick([2, 3, -1, 0, 0.5, -1.5, 2.0, True, 1, 4, 0.25, 1j if self.chance(0.2) else 5])

    def number_for(self, tensor: Any) -> Any:
        """A number; for float16 no complex one, because complex32 is refused."""
        number = self.number()
        return 2 if isinstance(number, complex) and self.kind(tensor) == "float16" else number

    def other(self, tensor: Any) -> Any:
        """A tensor that broadcasts with this one, a number, or (seldom) any tensor."""
        chance = self.random.random()
        if chance < 0.3:
            return self.number_for(tensor)
        if chance < 0.35:
            return self.tensor()
        fitting = [n for n, t in self.tensors.items() if mates(tuple(t.shape), tuple(tensor.shape))]
        picked = self.tensors[self.pick(fitting)]
        half = "float16" in (self.kind(tensor), self.kind(picked))
        return 2 if half and (picked.is_complex() or tensor.is_complex()) else picked

    def source(self, target: Any) -> Any:
        """What is written into ``target``; a copy where it reads, in another order, memory that is written meanwhile.

        PyTorch refuses that for dense tensors; for others the result depends on how its kernel is vectorised.
        """
        other = self.other(target)
        if not isinstance(other, self.torch.Tensor) or other is target:
            return other
        return other if dense(target) and dense(other) else self.apart(other, target)

    def apart(self, other: Any, target: Any) -> Any:
        """A tensor; a copy of one that shares memory with the target of a write."""
        together = other.untyped_storage().data_ptr() == target.untyped_storage().data_ptr() and target.numel()
        return other.clone() if together else other

    def dim(self, tensor: Any) -> int:
        """A dim of the tensor; seldom one that it does not have."""
        reach = max(tensor.dim(), 1)
        if self.chance(0.03):
            return int(self.pick([reach, -reach - 1, reach + 3]))
        return int(self.pick(range(-reach, reach)))

    def dims(self, tensor: Any) -> Any:
        """A dim, or a tuple of dims."""
        if self.chance(0.6) or tensor.dim() < 2:
            return self.dim(tensor)
        picked = self.random.sample(range(tensor.dim()), self.random.randrange(0, tensor.dim() + 1))
        dims = tuple(d - tensor.dim() if self.chance(0.4) else d for d in picked)
        self.words.append(repr(dims))
        return dims

    def options(self, **choices: Any) -> dict[str, Any]:
        """Some of these keyword arguments."""
        return {key: self.pick(values) for key, values in choices.items() if self.chance(0.5)}

    # ---- running ---------------------------------------------------------------------------------------------------

    def add(self, value: Any) -> None:
        """Give tensors names; old ones go when there are many."""
        for one in tensors_in(self.torch, value):
            if one.numel() <= MOST and one.dim() <= 5:
                self.tensors[f"t{self.count}"] = one
                self.count += 1
        while len(self.tensors) > 10:
            del self.tensors[self.random.choice(list(self.tensors)[:6])]

    def run(self, steps: int) -> None:
        functions, weights = [f for f, _ in self.steps], [w for _, w in self.steps]
        for _ in range(steps):
            (function,) = self.random.choices(functions, weights)
            self.seen.append(self.one(function))

    def one(self, function: Step) -> Any:
        self.words, before = [], self.count
        try:
            value = function(self)
            free = isinstance(value, Inexact)
            result = unsigned(shown(self, value.value)) if free else shown(self, value)
        except Exception as error:
            return [self.said(function), "raised", type(error).__name__, str(error), *self.glance(before)]
        self.add(None if free else value)
        return [self.said(function), result, *self.glance(before)]

    def said(self, function: Step) -> str:
        return " ".join([function.__name__, *self.words])

    def glance(self, before: int) -> list[Any]:
        """Now and then a look at all tensors: what a write has changed in others, and who shares with whom."""
        if not self.chance(0.2):
            return []
        return [{name: [look(self, t), shares(self, t)] for name, t in self.tensors.items()}]


def overlaps(tensor: Any) -> bool:
    """Whether two elements of a tensor are one place in memory, in another way than by a stride of 0."""
    steps = [range(0, n * s, s) if s else [0] for n, s in zip(tensor.shape, tensor.stride(), strict=True)]
    places = [sum(position) for position in itertools.product(*steps)]
    return len(set(places)) < len(places)


def dense(tensor: Any) -> bool:
    """Whether the elements lie one behind the other in some order of the dims."""
    step = 1
    for stride, size in sorted((s, n) for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n != 1):
        if stride != step:
            return False
        step *= size
    return True


def mates(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether two shapes broadcast."""
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(one), reversed(other), strict=False))


def tensors_in(torch: Any, value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for v in value for t in tensors_in(torch, v)] if isinstance(value, (tuple, list)) else []


def shown(p: OpProgram, value: Any) -> Any:
    """What can be seen of a result: of each tensor in it, or the plain value and its type."""
    if isinstance(value, p.torch.Tensor):
        return look(p, value)
    if isinstance(value, p.torch.Size):
        return ["Size", list(value)]
    if isinstance(value, (tuple, list)):
        return [type(value).__name__, *(shown(p, v) for v in value)]
    return [type(value).__name__, number(value)]


def look(p: OpProgram, tensor: Any) -> Any:
    values = [number(v) for v in flat(tensor.tolist())]
    bits = [tensor.is_conj(), tensor.is_neg()]
    layout = [list(tensor.shape), list(tensor.stride()), tensor.storage_offset(), tensor._version, tensor._is_view()]
    return [p.kind(tensor), *layout, bits, values]


def shares(p: OpProgram, tensor: Any) -> list[str]:
    where = tensor.untyped_storage().data_ptr()
    return [n for n, t in p.tensors.items() if t.numel() and t.untyped_storage().data_ptr() == where]


def flat(values: Any) -> list[Any]:
    return [v for item in values for v in flat(item)] if isinstance(values, list) else [values]


def number(value: Any) -> Any:
    """A number as JSON can hold it, signs of zero included.

    Not those of complex numbers: what gives -0 alone gives 0 in a whole vector, whose length the CPU decides.
    """
    if isinstance(value, complex):
        return ["complex", *unsigned([number(value.real), number(value.imag)])]
    if isinstance(value, float) and value == 0:
        return "-0" if math.copysign(1, value) < 0 else 0.0
    if isinstance(value, (bool, int, float)):
        return plain(value)
    return repr(value)


def unsigned(seen: Any) -> Any:
    """An observation without the signs of its zeros."""
    if isinstance(seen, list):
        return [unsigned(item) for item in seen]
    return 0.0 if seen == "-0" else seen


# ---- making tensors --------------------------------------------------------------------------------------------------


@step(6)
def made(p: OpProgram) -> Any:
    """A tensor of any dtype with small exact values, sometimes laid out otherwise than row by row."""
    shape = p.pick(SHAPES)
    tensor = made_as(p, shape, p.pick(DTYPES if p.chance(0.6) else COMMON))
    if len(shape) > 1 and p.chance(0.4):
        order = p.random.sample(range(len(shape)), len(shape))
        p.words.append(f"permuted {order}")
        tensor = tensor.permute(order)
    return tensor.clone() if p.chance(0.5) else tensor


def made_as(p: OpProgram, shape: tuple[int, ...], kind: str) -> Any:
    """A row-major tensor of this shape and dtype with small exact values."""
    values = [value_of(p, kind) for _ in range(math.prod(shape))]
    return p.torch.tensor(values, dtype=getattr(p.torch, kind)).reshape(shape)


def value_of(p: OpProgram, kind: str) -> Any:
    if kind == "bool":
        return p.chance(0.5)
    if kind == "uint8":
        return p.random.randrange(0, 9)
    if kind in INTEGERS:
        return p.random.randrange(-5, 6)
    if p.chance(0.04) and kind not in COMPLEX:
        return p.random.choice([math.inf, -math.inf, math.nan, -0.0])
    real = p.random.randrange(-16, 17) / 4
    return complex(real, p.random.randrange(-8, 9) / 4) if kind in COMPLEX else real
