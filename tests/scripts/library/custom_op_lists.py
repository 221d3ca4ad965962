"""Ops of one's own with lists, numbers and several results; libraries that define ops by schema."""

from typing import List, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor


@torch.library.custom_op("mylib::nofake", mutates_args=())
def nofake(
    x: Tensor,
    ts: List[Tensor],
    s: Union[int, float, bool],
    d: torch.dtype = torch.float32,
    dev: Optional[torch.device] = None,
    b: bool = True,
    name: str = "hi",
    f: float = 0.5,
    *,
    k: int = 3,
) -> List[Tensor]:
    return [x * s, ts[0] + k]


print(nofake._opoverload._schema)
try:
    nofake(torch.empty(2, device="meta"), [], 1)
except Exception as e:
    print(type(e).__name__, e)
print(nofake(torch.ones(1), [torch.ones(2)], 2), nofake(torch.ones(1), (torch.ones(2),), 2, k=5))
for f in (
    lambda: nofake(1, [], 2),
    lambda: nofake(torch.ones(1), [1], 2),
    lambda: nofake(torch.ones(1), [], "a"),
    lambda: nofake(torch.ones(1), [torch.ones(1)], 2, zz=1),
    lambda: nofake(torch.ones(1), [torch.ones(1)], 2, torch.int8, None, 1),
    lambda: nofake(torch.ones(1), [torch.ones(1)], 2, torch.int8, "cpu", True, 3),
    lambda: torch.ops.mylib.nofake.foo,
    lambda: torch.ops.nsx.foo,
    lambda: nofake(torch.ones(1, requires_grad=True), [torch.ones(1)], 1)[0].grad_fn.name(),
):
    try:
        print(f())
    except Exception as e:
        print(type(e).__name__, e)


# list autograd
@torch.library.custom_op("mylib::catsq", mutates_args=())
def catsq(ts: Sequence[Tensor], p: int) -> Tensor:
    return torch.cat(list(ts)) ** p


def sc(ctx, inputs, output):
    ts, p = inputs
    ctx.save_for_backward(*ts)
    ctx.p = p


def bw(ctx, g):
    out = []
    i = 0
    for t in ctx.saved_tensors:
        out.append(g[i : i + len(t)] * ctx.p * t ** (ctx.p - 1))
        i += len(t)
    return out, None


catsq.register_autograd(bw, setup_context=sc)
a = torch.tensor([1.0, 2.0], requires_grad=True)
b = torch.tensor([3.0], requires_grad=True)
catsq([a, b], 2).sum().backward()
print(a.grad, b.grad)
lib = torch.library.Library("mylib2", "DEF")
lib.define("foo(Tensor x, int n=2) -> Tensor")
lib.impl("foo", lambda x, n=2: x * n, "CPU")
print(torch.ops.mylib2.foo(torch.ones(2)), torch.ops.mylib2.foo(torch.ones(2), 5), torch.ops.mylib2.foo.default._schema)
lib.define("bar(Tensor x) -> Tensor")
lib.impl("bar", lambda x: x * x, "CompositeImplicitAutograd")
q = torch.ones(2, requires_grad=True)
print(torch.ops.mylib2.bar(q).grad_fn.name())
torch.library.define("mylib3::baz", "(Tensor x) -> Tensor")


@torch.library.impl("mylib3::baz", "cpu")
def baz(x):
    return x + 1


print(torch.ops.mylib3.baz(torch.ones(1)))


@torch.library.impl("mylib3::baz", "default")
def baz2(x):
    return x + 2


print(torch.ops.mylib3.baz(torch.ones(1)))
try:
    lib.define("foo(Tensor x) -> Tensor")
except Exception as e:
    print(type(e).__name__, str(e)[:150])


@torch.library.custom_op("mylib::two", mutates_args=())
def two(x: Tensor) -> Tuple[Tensor, Tensor]:
    return x * 2, x + 1


two.register_autograd(lambda ctx, g1, g2: g1 * 2 + g2)
x = torch.ones(2, requires_grad=True)
u, v = two(x)
(u.sum() + v.sum()).backward()
print(x.grad, u.grad_fn is v.grad_fn, type(two(x)))
print(two, two._qualname, two._name, two._namespace)
