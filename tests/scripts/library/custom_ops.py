"""Ops of one's own: kernels, shapes for meta, derivatives, schemas, arguments that do not fit."""

import numpy as np
import torch
from torch import Tensor
from typing import Optional, List, Tuple


def t(n, f):
    try:
        r = f()
        print(n, r)
    except Exception as x:
        print(n, type(x).__name__, str(x)[:400])


@torch.library.custom_op("mylib::numpy_sin", mutates_args=())
def numpy_sin(x: Tensor) -> Tensor:
    return torch.from_numpy(np.sin(x.detach().numpy()))


print(type(numpy_sin).__name__, numpy_sin)
x = torch.tensor([0.5, 1.0], requires_grad=True)
t("plain", lambda: numpy_sin(torch.ones(2)))
y = numpy_sin(x)
print(y, y.requires_grad, y.grad_fn.name())
t("back", lambda: y.sum().backward())


@numpy_sin.register_fake
def _(x):
    return torch.empty_like(x)


t("meta", lambda: numpy_sin(torch.empty(3, device="meta")))


def setup_context(ctx, inputs, output):
    (x,) = inputs
    ctx.save_for_backward(x)
    print("setup", len(inputs), type(output).__name__)


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return grad * x.cos()


numpy_sin.register_autograd(backward, setup_context=setup_context)
y = numpy_sin(x)
print(y, y.grad_fn.name())
y.sum().backward()
print(x.grad)
t("ops", lambda: torch.ops.mylib.numpy_sin(x))
t("default", lambda: torch.ops.mylib.numpy_sin.default(x))
print(torch.ops.mylib.numpy_sin, torch.ops.mylib.numpy_sin.default, torch.ops.mylib.numpy_sin.default._schema)
t("none", lambda: torch.ops.mylib.nothing)


@torch.library.custom_op("mylib::scale_", mutates_args={"x"})
def scale_(x: Tensor, k: float) -> None:
    x.mul_(k)


z = torch.ones(3)
v = z._version
scale_(z, 2.0)
print(z, z._version - v)
t("kw", lambda: scale_(z, k=3.0))
print(z)
t("argerr", lambda: scale_(z))
t("argtype", lambda: scale_(z, "a"))
t("extra", lambda: scale_(z, 1.0, 2.0))


@torch.library.custom_op("mylib::two", mutates_args=())
def two(x: Tensor, n: int = 2, w: Optional[Tensor] = None, names: Optional[List[int]] = None) -> Tuple[Tensor, Tensor]:
    return x * n, x + 1


print(two._opoverload._schema)
t("two", lambda: two(torch.ones(1)))
t("two3", lambda: two(torch.ones(1), 3))


@torch.library.custom_op("mylib::alias", mutates_args=())
def alias(x: Tensor) -> Tensor:
    return x


try:
    alias(torch.ones(1))
except RuntimeError as error:
    print("The output of this custom operator (1) must not also be an input" in str(error))


def noann(x):
    return x


t("noann", lambda: torch.library.custom_op("mylib::noann", noann, mutates_args=()))


def badret(x: Tensor):
    return x


t("badret", lambda: torch.library.custom_op("mylib::badret", badret, mutates_args=()))
print(torch.library.infer_schema(two._init_fn, mutates_args=()))
t("mutbad", lambda: torch.library.custom_op("mylib::mb", lambda x: x, mutates_args={"y"}))


@torch.library.custom_op("mylib::lin", mutates_args=(), schema="(Tensor x, Tensor w) -> Tensor")
def lin(x, w):
    return x @ w


a = torch.randn(2, 3, requires_grad=True)
out = lin(a, torch.ones(3, 2))
print(out.grad_fn.name(), out.shape)
torch.library.register_autograd(
    "mylib::lin",
    lambda ctx, g: (g @ ctx.w.t(), None),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "w", inputs[1]),
)
out = lin(a, torch.ones(3, 2))
out.sum().backward()
print(a.grad, out.grad_fn.name())
with torch.no_grad():
    print(lin(a, torch.ones(3, 2)).requires_grad)


@torch.library.register_kernel("mylib::lin", "cpu")
def _(x, w):
    return x @ w * 2


print(lin(torch.ones(1, 3), torch.ones(3, 1)))

packet = torch.ops.mylib.lin
for each in (packet, torch.ops.aten.add):
    first = getattr(each, each.overloads()[0])
    print(each, repr(each), first, repr(first), first.namespace, first.overloadpacket is each)
    print(isinstance(each, torch._ops.OpOverloadPacket), isinstance(first, torch._ops.OpOverload))
for look in (lambda: torch.ops.mylib.nothing, lambda: packet.nothing, lambda: torch.ops.aten.nothing):
    try:
        look()
    except AttributeError as error:
        print(error)
