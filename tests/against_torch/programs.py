"""Random programs of ops, views, writes and backward passes, for any module that looks like torch.

A program is made while it runs: a seeded generator picks each step from what the tensors look like at that moment. Two
torches that agree see the same program; where they first disagree, what they observed differs.

``run_programs.py`` runs them from the command line and compares what two torches observed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

from observations import (  # the file lies beside this one; run_programs.py puts its folder on the path
    broadcasts,
    flat,
    grad_of,
    look,
    plain,
    shares,
)

Step = Callable[["Program"], Any]
STEPS: dict[str, list[tuple[str, Step, int]]] = {}


def step(kind: str, weight: int = 1) -> Callable[[Step], Step]:
    """Register a kind of step; ``weight`` says how often it is picked."""

    def register(function: Step) -> Step:
        STEPS.setdefault(kind, []).append((function.__name__, function, weight))
        return function

    return register


class Program:
    """One program at work: its random choices, its tensors by name, and what has been observed."""

    def __init__(self, torch: Any, seed: int, kinds: list[str]) -> None:
        self.torch, self.random = torch, random.Random(seed)
        self.tensors: dict[str, Any] = {}
        self.nodes: list[Any] = []
        self.events: list[Any] = []
        self.seen: list[Any] = []
        self.words: list[str] = []  # what was picked for this step, for people who look for a difference
        self.count = 0
        self.inferred = False  # from then on versions are not compared: PyTorch counts writes inside its own kernels
        self.choices = [entry for kind in kinds for entry in STEPS[kind]]
        for _ in range(3):
            self.add(leaf(self))

    # ---- choices ---------------------------------------------------------------------------------------------------

    def pick(self, values: Any) -> Any:
        picked = self.random.choice(list(values))
        if isinstance(picked, str):
            self.words.append(picked)
        return picked

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def name(self) -> str:
        """One of the tensors, more often a young one."""
        names = list(self.tensors)
        self.words.append(names[-1 - int(len(names) * self.random.random() ** 2)])
        return self.words[-1]

    def tensor(self) -> Any:
        return self.tensors[self.name()]

    def of_shape(self, shape: Any) -> Any:
        """A tensor that broadcasts to ``shape``, or a number."""
        fitting = [t for t in self.tensors.values() if broadcasts(tuple(t.shape), tuple(shape))]
        if not fitting or self.chance(0.2):
            return self.pick([2.0, 0.5, -1.0, 3])
        return self.pick(fitting)

    def apart(self, target: Any, shape: Any) -> Any:
        """The same for an operand of a write into ``target``: what it shares memory with is read in no fixed order."""
        found = self.of_shape(shape)
        if not isinstance(found, self.torch.Tensor) or found is target or not shares(found, target):
            return found
        return 2.0

    def dim(self, tensor: Any) -> int:
        return self.random.randrange(-tensor.dim(), tensor.dim()) if tensor.dim() else 0

    # ---- running ---------------------------------------------------------------------------------------------------

    def add(self, value: Any) -> None:
        """Give tensors names; the oldest go when there are many."""
        for one in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(one, self.torch.Tensor) and one.numel() <= 64:
                self.tensors[f"t{self.count}"] = one
                self.count += 1
        while len(self.tensors) > 9:
            del self.tensors[self.pick(list(self.tensors)[:5])]

    def run(self, steps: int) -> None:
        functions = [f for _, f, _ in self.choices]
        weights = [w for _, _, w in self.choices]
        for _ in range(steps):
            (function,) = self.random.choices(functions, weights)
            self.seen.append(self.one(function))

    def one(self, function: Step) -> Any:
        before, self.words = set(self.tensors), []
        try:
            value = function(self)
        except Exception as error:
            return [self.said(function), "raised", type(error).__name__, str(error).split("\n")[0]]
        self.add(value)
        fresh = [name for name in self.tensors if name not in before]
        told = self.watched(fresh)
        events, self.events = self.events, []
        return [self.said(function), {name: look(self, self.tensors[name], True) for name in told}, events]

    def said(self, function: Step) -> str:
        return " ".join([function.__name__, *self.words])

    def watched(self, fresh: list[str]) -> list[str]:
        """New tensors, and sometimes all: looking at a view's grad_fn has effects of its own."""
        return list(self.tensors) if self.chance(0.3) else fresh


# ---- the steps -------------------------------------------------------------------------------------------------------


@step("make", 2)
def leaf(p: Program) -> Any:
    shape = p.pick([(2,), (3,), (2, 3), (3, 2), (1, 3), (2, 1, 2), ()])
    count = math.prod(shape)
    values = [round(p.random.uniform(-2, 2), 3) for _ in range(count)]
    made = p.torch.tensor(values, dtype=p.torch.float64).reshape(shape) if shape else p.torch.tensor(values[0]).double()
    return made.clone().requires_grad_(p.chance(0.7))


UNARY = ["neg", "exp", "sin", "cos", "abs", "tanh", "sigmoid", "square", "clone", "relu"]
BINARY = ["add", "sub", "mul"]


@step("pointwise", 4)
def unary(p: Program) -> Any:
    return getattr(p.tensor(), p.pick(UNARY))()


@step("pointwise", 6)
def binary(p: Program) -> Any:
    one = p.tensor()
    return getattr(one, p.pick(BINARY))(p.of_shape(one.shape))


@step("pointwise", 1)
def divided(p: Program) -> Any:
    return p.tensor() / p.pick([2.0, -4.0, 0.5])


@step("reduce", 2)
def reduced(p: Program) -> Any:
    one = p.tensor()
    name = p.pick(["sum", "mean"])
    if one.dim() == 0 or p.chance(0.4):
        return getattr(one, name)()
    return getattr(one, name)(p.dim(one), p.chance(0.5))


@step("view", 2)
def transposed(p: Program) -> Any:
    one = p.tensor()
    return one.transpose(p.dim(one), p.dim(one))


@step("view", 2)
def selected(p: Program) -> Any:
    one = p.tensor()
    dim = p.dim(one)
    return one.select(dim, p.random.randrange(one.shape[dim])) if one.dim() else one.view(1)


@step("view", 3)
def sliced(p: Program) -> Any:
    one = p.tensor()
    if not one.dim():
        return one.unsqueeze(0)
    start = p.random.randrange(one.shape[0])
    return one[start:] if p.chance(0.5) else one[..., : one.shape[-1] : p.pick([1, 2])]


@step("view", 2)
def reshaped(p: Program) -> Any:
    one = p.tensor()
    return p.pick([one.reshape, one.view])(p.pick([(-1,), (one.numel(), 1), (1, -1)]))


@step("view", 1)
def unsqueezed(p: Program) -> Any:
    one = p.tensor()
    return one.unsqueeze(0) if one.dim() < 4 else one.squeeze()


@step("view", 1)
def squeezed(p: Program) -> Any:
    one = p.tensor()
    return one.squeeze() if p.chance(0.5) else one.squeeze(p.dim(one))


@step("view", 1)
def expanded(p: Program) -> Any:
    one = p.tensor()
    return one.expand(2, *one.shape) if one.dim() < 3 else one.expand_as(one)


@step("view", 1)
def strided(p: Program) -> Any:
    one = p.tensor()
    if one.untyped_storage().nbytes() < 16:
        return one
    return one.as_strided((min(2, one.numel()),), (1,)) if p.chance(0.5) else one.as_strided((2, 2), (0, 1)[:2], 0)


@step("view", 1)
def diagonal(p: Program) -> Any:
    one = p.tensor()
    return one.diagonal() if one.dim() == 2 else one.view_as(one)


@step("view", 1)
def detached(p: Program) -> Any:
    return p.tensor().detach()


@step("multi", 2)
def unbound(p: Program) -> Any:
    one = p.tensor()
    return one.unbind(0)[:2] if one.dim() else one


@step("multi", 1)
def chunked(p: Program) -> Any:
    one = p.tensor()
    return p.pick([one.chunk, one.split])(p.pick([1, 2])) if one.dim() else one


@step("inplace", 4)
def written(p: Program) -> Any:
    one = p.tensor()
    getattr(one, p.pick(["add_", "mul_", "sub_", "copy_"]))(p.apart(one, one.shape))


@step("inplace", 3)
def changed(p: Program) -> Any:
    getattr(p.tensor(), p.pick(["neg_", "exp_", "sin_", "tanh_", "zero_", "relu_", "square_", "sigmoid_"]))()


@step("inplace", 2)
def assigned(p: Program) -> Any:
    one = p.tensor()
    if one.dim():
        index = p.random.randrange(one.shape[0])
        one[index] = p.apart(one, one.shape[1:])


@step("inplace", 1)
def filled(p: Program) -> Any:
    p.tensor().fill_(p.pick([0.5, 1, -2.0]))


@step("inplace", 1)
def written_untracked(p: Program) -> Any:
    one = p.tensor()
    with p.torch.no_grad():
        one.mul_(p.pick([2.0, 0.5]))


@step("inplace", 1)
def written_data(p: Program) -> Any:
    p.tensor().data.mul_(2.0)


@step("inplace", 1)
def written_through_detach(p: Program) -> Any:
    p.tensor().detach().add_(1.0)


@step("modes", 1)
def viewed_untracked(p: Program) -> Any:
    one = p.tensor()
    with p.torch.no_grad():
        return one.view_as(one) if not one.dim() else one[:1]


@step("modes", 1)
def computed_untracked(p: Program) -> Any:
    with p.torch.set_grad_enabled(p.chance(0.3)):
        return p.tensor() * 2.0


@step("modes", 1)
def inferred(p: Program) -> Any:
    one = p.tensor()
    p.inferred = True
    with p.torch.inference_mode():
        return p.pick([lambda: one * 2.0, lambda: one.view_as(one)])()


@step("leaf", 1)
def tracked(p: Program) -> Any:
    p.tensor().requires_grad_(p.chance(0.8))


@step("leaf", 1)
def detached_in_place(p: Program) -> Any:
    p.tensor().detach_()


@step("leaf", 1)
def retained(p: Program) -> Any:
    p.tensor().retain_grad()


@step("leaf", 1)
def cleared(p: Program) -> Any:
    one = p.tensor()
    if one.is_leaf:
        one.grad = None


@step("hooks", 1)
def hooked(p: Program) -> Any:
    name = p.name()
    _ = p.tensors[name].grad_fn  # PyTorch crashes when a hook is put on a view whose node is of an older version
    factor = p.pick([None, 2.0, -1.0])

    def hook(grad: Any) -> Any:
        p.events.append([name, "hook", None if grad is None else [plain(v) for v in flat(grad.detach().tolist())]])
        return None if factor is None or grad is None else grad * factor

    p.tensors[name].register_hook(hook)


@step("hooks", 1)
def node_hooked(p: Program) -> Any:
    name = p.name()
    node = p.tensors[name].grad_fn
    if node is not None:
        told = node.name()
        node.register_prehook(lambda grads: p.events.append([told, "pre", [g is None for g in grads]]))
        node.register_hook(lambda ins, outs: p.events.append([told, "post", [g is None for g in ins]]))


@step("hooks", 1)
def post_hooked(p: Program) -> Any:
    name = p.name()
    p.tensors[name].register_post_accumulate_grad_hook(lambda t: p.events.append([name, "accumulated"]))


def custom(p: Program) -> Any:
    """Custom functions, made once a program for the torch at hand."""
    torch = p.torch

    class Scale(torch.autograd.Function):  # type: ignore[name-defined,misc]
        @staticmethod
        def forward(ctx: Any, x: Any, factor: float) -> Any:
            ctx.factor = factor
            ctx.save_for_backward(x)
            return x * factor

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * ctx.factor + x * 0, None

    class Same(torch.autograd.Function):  # type: ignore[name-defined,misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 3

    class View(torch.autograd.Function):  # type: ignore[name-defined,misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.view(-1)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

    class Double(torch.autograd.Function):  # type: ignore[name-defined,misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    class Pair(torch.autograd.Function):  # type: ignore[name-defined,misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            second = x.detach() * 2
            ctx.mark_non_differentiable(second)
            return x.exp(), second, x + 1

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0] + grads[2]

    return Scale, Same, View, Double, Pair


@step("custom", 3)
def custom_called(p: Program) -> Any:
    scale, same, view, double, pair = custom(p)
    one = p.tensor()
    calls = [lambda: scale.apply(one, 3.0), lambda: same.apply(one), lambda: view.apply(one)]
    return p.pick([*calls, lambda: double.apply(one), lambda: pair.apply(one)])()


def scalar(p: Program) -> Any:
    one = p.tensor()
    return one.sum() if p.chance(0.7) else (one * one).sum()


@step("backward", 3)
def backward(p: Program) -> Any:
    scalar(p).backward(retain_graph=p.chance(0.4))
    p.events.append(["grads", [[n, grad_of(t.grad)] for n, t in p.tensors.items() if t.is_leaf and t.grad is not None]])


@step("backward", 2)
def differentiated(p: Program) -> Any:
    inputs = [p.tensor() for _ in range(p.pick([1, 2]))]
    found = p.torch.autograd.grad(scalar(p), inputs, retain_graph=p.chance(0.6), allow_unused=p.chance(0.8))
    p.events.append(["found", [None if g is None else grad_of(g) for g in found]])


@step("backward", 1)
def twice(p: Program) -> Any:
    one = p.tensor()
    (first,) = p.torch.autograd.grad((one * one).sum(), one, create_graph=True)
    return first


@step("backward", 1)
def with_vector(p: Program) -> Any:
    one = p.tensor()
    one.backward(p.torch.ones_like(one) * 2, retain_graph=p.chance(0.5))


@step("backward", 1)
def into_inputs(p: Program) -> Any:
    scalar(p).backward(inputs=[p.tensor()], retain_graph=True)


KINDS = list(STEPS)
