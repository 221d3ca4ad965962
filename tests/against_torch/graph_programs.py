"""Steps of random programs about the graph: whole walks, higher orders, hooks, custom functions, modes, more writes.

They are registered in the same table as those of ``programs.py``, under kinds of their own.
"""

from __future__ import annotations

import contextlib
from typing import Any

from observations import flat, grad_of, plain
from programs import Program, scalar, step  # the file lies beside this one

# ---- looking at the graph --------------------------------------------------------------------------------------------


def walk(tensor: Any, most: int = 60) -> list[Any]:
    """Every node below a tensor, breadth first: its name, what it saved, and the numbers of its children."""
    root = tensor.grad_fn
    numbers: dict[Any, int] = {} if root is None else {root: 0}
    queue = list(numbers)
    seen = []
    for node in queue:
        edges = []
        for child, number in node.next_functions:
            if child is not None and child not in numbers and len(numbers) < most:
                numbers[child] = len(numbers)
                queue.append(child)
            edges.append(None if child is None else [numbers.get(child, -1), number])
        seen.append([node.name(), edges])
    order = sorted((node for node in queue if hasattr(node, "_sequence_nr")), key=lambda node: node._sequence_nr())
    made = [numbers[node] for node in order if "AccumulateGrad" not in node.name()]
    return [*seen, ["in the order they were made", made]]


@step("graph", 3)
def walked(p: Program) -> Any:
    p.events.append(walk(p.tensor()))


SAVED = ("_saved_self", "_saved_other", "_saved_result", "_saved_exponent", "_saved_dim", "_saved_size", "_saved_alpha")


@step("graph", 2)
def looked_into(p: Program) -> Any:
    node = p.tensor().grad_fn
    for name in SAVED if node is not None else ():
        try:
            value = getattr(node, name)
        except (AttributeError, RuntimeError) as error:
            p.events.append([name, type(error).__name__, str(error).split("\n")[0]])
            continue
        if isinstance(value, p.torch.Tensor):
            value = [list(value.shape), value.requires_grad, [plain(v) for v in flat(value.detach().tolist())]]
        p.events.append([name, list(value) if isinstance(value, tuple) else value])


@step("graph", 1)
def asked_for_edge(p: Program) -> Any:
    edge = p.torch.autograd.graph.get_gradient_edge(p.tensor())
    p.events.append([edge.node.name(), edge.output_nr])
    found = p.torch.autograd.grad(scalar(p), edge, retain_graph=True, allow_unused=True)
    p.events.append([None if g is None else grad_of(g) for g in found])


@step("graph", 1)
def node_called(p: Program) -> Any:
    one = p.tensor()
    node = one.grad_fn
    if node is not None and "CopySlices" not in node.name() and "Pair" not in node.name() and one.output_nr == 0:
        with p.torch.no_grad():
            found = node(p.torch.ones_like(one)) if node.name().endswith("Backward0") else None
        kept = found if isinstance(found, tuple) else (found,)
        p.events.append([None if g is None else grad_of(g) for g in kept])


# ---- higher orders ---------------------------------------------------------------------------------------------------

CURVES = ["exp", "sin", "tanh", "sigmoid", "square", "cos"]


@step("higher", 3)
def differentiated_twice(p: Program) -> Any:
    one = p.tensor()
    inner = getattr(one, p.pick(CURVES))() * p.of_shape(one.shape)
    (first,) = p.torch.autograd.grad(inner.sum(), one, create_graph=True)
    p.events.append(walk(first, 30))
    return first


@step("higher", 2)
def backward_with_graph(p: Program) -> Any:
    one = p.tensor()
    scalar(p).backward(create_graph=True)
    if one.is_leaf and one.grad is not None:
        p.events.append(grad_of(one.grad))
        return one.grad
    return None


@step("higher", 1)
def of_several(p: Program) -> Any:
    inputs = [p.tensor() for _ in range(2)]
    outputs = [p.tensor() * 1.0, p.tensor().sum()]
    starts = [p.torch.ones_like(outputs[0]), None]
    found = p.torch.autograd.grad(outputs, inputs, starts, create_graph=p.chance(0.5), retain_graph=True,
                                  allow_unused=True, materialize_grads=p.chance(0.5))  # fmt: skip
    return [g for g in found if g is not None]


@step("higher", 1)
def by_functional(p: Program) -> Any:
    functional = p.torch.autograd.functional
    one, other = p.tensor().detach(), p.of_shape(())
    curve = p.pick(CURVES)
    kind = p.pick(["jacobian", "hessian", "vjp", "jvp", "hvp", "vhp"])

    def function(x: Any) -> Any:
        y = getattr(x, curve)() * other
        return y.sum() if kind in ("hessian", "hvp", "vhp") else y

    given = () if kind in ("jacobian", "hessian") else (p.torch.ones_like(one),)
    return getattr(functional, kind)(function, one, *given)


@step("higher", 1)
def by_func(p: Program) -> Any:
    func = p.torch.func
    one, curve = p.tensor().detach().clone(), p.pick(CURVES)  # PyTorch's duals refuse expanded tensors

    def function(x: Any) -> Any:
        return getattr(x, curve)()

    kind = p.pick(["grad", "jacrev", "vjp", "jvp", "nested"])
    made = {
        "grad": lambda: func.grad(lambda x: function(x).sum())(one),
        "jacrev": lambda: func.jacrev(function)(one),
        "vjp": lambda: func.vjp(function, one)[1](p.torch.ones_like(one)),
        "jvp": lambda: func.jvp(function, (one,), (p.torch.ones_like(one),)),
        "nested": lambda: func.grad(lambda x: func.grad(lambda y: function(y).sum())(x).sum())(one),
    }[kind]()
    for each in made if isinstance(made, tuple) else (made,):
        p.events.append([list(each.shape), [plain(v) for v in flat(each.tolist())]])


# ---- hooks -----------------------------------------------------------------------------------------------------------


def asked(p: Program) -> str:
    """A name whose tensor was asked for its node: PyTorch crashes when a hook is put on a view with an old one."""
    name = p.name()
    _ = p.tensors[name].grad_fn
    return name


@step("more hooks", 2)
def hook_removed(p: Program) -> Any:
    name = asked(p)
    handle = p.tensors[name].register_hook(lambda grad: p.events.append([name, "should be gone"]))
    if p.chance(0.8):
        handle.remove()


@step("more hooks", 1)
def hook_refused(p: Program) -> Any:
    bad = p.pick(["shape", "type", "raise"])

    def hook(grad: Any) -> Any:
        if bad == "raise":
            raise ValueError("from a hook")
        return grad.new_zeros(7) if bad == "shape" else 3

    handle = p.tensors[asked(p)].register_hook(hook)
    try:
        scalar(p).backward(retain_graph=True)
    finally:
        handle.remove()


@step("more hooks", 1)
def node_hook_scales(p: Program) -> Any:
    node = p.tensor().grad_fn
    if node is not None:
        pre = p.chance(0.5)

        def scaled(grads: Any) -> Any:
            return tuple(None if g is None else g * 2 for g in grads)

        handle = node.register_prehook(scaled) if pre else node.register_hook(lambda ins, outs: scaled(ins))
        scalar(p).backward(retain_graph=True)
        if p.chance(0.5):
            handle.remove()


@step("more hooks", 1)
def several_hooked(p: Program) -> Any:
    tensors = [p.tensors[asked(p)], p.tensors[asked(p)]]
    mode = p.pick(["all", "any"])

    def told(grads: Any) -> None:
        p.events.append([mode, [g is None for g in grads] if mode == "all" else list(grads.shape)])

    handle = p.torch.autograd.graph.register_multi_grad_hook(tensors, told, mode=mode)
    try:
        scalar(p).backward(retain_graph=True)
    finally:
        handle.remove()


@step("more hooks", 2)
def saved_packed(p: Program) -> Any:
    one = p.tensor()
    seen = p.events

    def pack(tensor: Any) -> Any:
        seen.append(["pack", list(tensor.shape), tensor.requires_grad])
        return tensor.detach().clone()

    def unpack(tensor: Any) -> Any:
        p.events.append(["unpack", list(tensor.shape)])
        return tensor

    with p.torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        return getattr(one, p.pick(CURVES))() * p.of_shape(one.shape)


# ---- checkpoints -----------------------------------------------------------------------------------------------------


@step("checkpoint", 2)
def checkpointed(p: Program) -> Any:
    from importlib import import_module

    checkpoint = import_module(f"{p.torch.__name__}.utils.checkpoint")
    first, second = p.pick(CURVES), p.pick(CURVES)

    def function(x: Any) -> Any:
        p.events.append("run")
        return getattr(getattr(x, first)(), second)()

    return checkpoint.checkpoint(function, p.tensor(), use_reentrant=p.chance(0.5))


# ---- custom functions ------------------------------------------------------------------------------------------------


def customs(p: Program) -> list[Any]:
    """More custom functions, made for the torch at hand."""
    torch = p.torch

    class Cube(torch.autograd.Function):  # type: ignore[name-defined,misc]
        @staticmethod
        def forward(x: Any) -> Any:
            return x**3

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs, output)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 3 * ctx.saved_tensors[0] ** 2

    class Lazy(torch.autograd.Function):  # type: ignore[name-defined,misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, one: Any, two: Any) -> Any:
            p.events.append(["lazy", one is None, two is None])
            return one if two is None else two

    class Once(torch.autograd.Function):  # type: ignore[name-defined,misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0]

    class Again(torch.autograd.Function):  # type: ignore[name-defined,misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            with torch.enable_grad():
                x = ctx.saved_tensors[0].detach().requires_grad_()
                (inner,) = torch.autograd.grad((x * x).sum(), x)
            return grad * inner

    return [Cube, Lazy, Once, Again]


@step("more custom", 3)
def more_custom_called(p: Program) -> Any:
    return p.pick(customs(p)).apply(p.tensor())


WRONG = [
    lambda g: (g, g), lambda g: (), lambda g: 3, lambda g: g.new_zeros(7), lambda g: None, lambda g: g.float(),
    lambda g: g.unsqueeze(0), lambda g: [g],
]  # fmt: skip


@step("more custom", 1)
def custom_wrong(p: Program) -> Any:
    wrong = p.pick(WRONG)

    class Wrong(p.torch.autograd.Function):  # type: ignore[name-defined,misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return wrong(grad)

    one = p.tensor()
    found = p.torch.autograd.grad(Wrong.apply(one).sum(), one, retain_graph=True, allow_unused=True)
    p.events.append([None if g is None else grad_of(g) for g in found])


# ---- modes -----------------------------------------------------------------------------------------------------------


@step("more modes", 1)
def nested_modes(p: Program) -> Any:
    one = p.tensor()
    modes = [p.torch.no_grad, p.torch.enable_grad, lambda: p.torch.set_grad_enabled(True)]
    with contextlib.ExitStack() as stack:
        for _ in range(p.pick([1, 2, 3])):
            stack.enter_context(p.pick(modes)())
        p.events.append(p.torch.is_grad_enabled())
        return one.view_as(one) if p.chance(0.5) else one * 3.0


@step("more modes", 1)
def untracked_writes(p: Program) -> Any:
    one = p.tensor()
    with p.torch.no_grad():
        view = one.view(-1) if one.is_contiguous() else one.t() if one.dim() == 2 else one
        view.mul_(0.5)
    return view


@step("more modes", 1)
def decorated(p: Program) -> Any:
    one = p.tensor()

    @p.torch.no_grad()
    def numbers() -> Any:
        yield p.torch.is_grad_enabled(), one * 2
        yield p.torch.is_grad_enabled(), one.view_as(one)

    made = []
    for inside, value in numbers():
        p.events.append([inside, p.torch.is_grad_enabled()])
        made.append(value)
    return made


@step("more modes", 1)
def counted(p: Program) -> Any:
    p.torch.autograd.graph.increment_version(p.tensor())


# ---- gradients of leaves ---------------------------------------------------------------------------------------------


@step("grads", 1)
def grad_assigned(p: Program) -> Any:
    one = p.tensor()
    if one.is_leaf and one.requires_grad:
        one.grad = p.pick([None, p.torch.ones_like(one), p.torch.zeros_like(one).t() if one.dim() == 2 else None])


@step("grads", 1)
def grad_written(p: Program) -> Any:
    one = p.tensor()
    if one.is_leaf and one.grad is not None:
        p.pick([one.grad.zero_, lambda: one.grad.mul_(2.0), lambda: one.grad.detach_()])()
        p.events.append(grad_of(one.grad))


@step("grads", 1)
def data_assigned(p: Program) -> Any:
    one = p.tensor()
    if one.is_leaf and not one.is_inference():  # PyTorch half forgets that such a tensor was one
        one.data = p.torch.full_like(one, 0.5)


@step("grads", 2)
def accumulated(p: Program) -> Any:
    one = p.tensor()
    laid = one.t() if one.dim() == 2 else one
    for _ in range(p.pick([1, 2])):
        (laid * 2.0).sum().backward(retain_graph=True)
    if one.is_leaf and one.grad is not None:
        p.events.append(grad_of(one.grad))


@step("grads", 1)
def batched(p: Program) -> Any:
    one = p.tensor().detach().clone().requires_grad_()  # PyTorch's vmap cannot run the hooks of retain_grad
    made = one * one
    vectors = p.torch.ones((2, *made.shape), dtype=made.dtype)
    (found,) = p.torch.autograd.grad(made, one, vectors, is_grads_batched=True)
    p.events.append([list(found.shape), [plain(v) for v in flat(found.tolist())]])
