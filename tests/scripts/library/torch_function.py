"""Classes and modes with __torch_function__: what they are asked, what they get, and what results become."""
import operator

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode, handle_torch_function, has_torch_function, is_tensor_like, resolve_name


def attempt(function):
    try:
        print("  ", function())
    except Exception as error:
        print("  ", type(error).__name__, str(error).splitlines()[0])


# A duck type with a table of its own functions.
HANDLED = {}


def implements(function):
    def decorate(own):
        HANDLED[function] = own
        return own
    return decorate


class ScalarTensor:
    """A diagonal matrix with one value."""

    def __init__(self, n, value):
        self.n, self.value = n, value

    def __repr__(self):
        return f"ScalarTensor(n={self.n}, value={self.value})"

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in HANDLED or not all(issubclass(t, (torch.Tensor, cls)) for t in types):
            return NotImplemented
        return HANDLED[func](*args, **(kwargs or {}))


@implements(torch.mean)
def mean(input):
    return float(input.value) / input.n


@implements(torch.add)
def add(input, other):
    if isinstance(other, ScalarTensor):
        return ScalarTensor(input.n, input.value + other.value)
    return torch.add(torch.eye(input.n) * input.value, other)


d = ScalarTensor(3, 2)
print("duck type")
attempt(lambda: torch.mean(d))
attempt(lambda: torch.add(d, d))
attempt(lambda: torch.add(d, torch.ones(3, 3)))
attempt(lambda: torch.mul(d, 3))
attempt(lambda: torch.cat([d, torch.ones(1)]))
attempt(lambda: torch.ones(1) + d)
attempt(lambda: is_tensor_like(d))


# A plain subclass: what it computes is of its class.
class Sub(torch.Tensor):
    pass


s = Sub([1.0, 2.0])
print("plain subclass", s)
for result in (
    s + 1, 1 - s, torch.ones(2) * s, s.sum(), s[0], s == s, s.max(0).values, s.split(1)[1], torch.stack([s, s]), s.data,
    s.detach(), s.add_(1), s.clone(), s.to(torch.float64), F.relu(s), F.softmax(s, 0), s.numpy(), s.tolist(),
    s.grad, s.shape,
):
    print("  ", type(result).__name__)
r = Sub([1.0, 2.0]).requires_grad_()
y = r * 2
print(y.grad_fn.name(), y.grad_fn.next_functions[0][0].name(), y.requires_grad, r.is_leaf)
y.sum().backward()
print(type(r.grad).__name__, r.grad)


# A subclass that writes down what is asked of it.
class Log(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print("    asked", resolve_name(func), [t.__name__ for t in types if t is not torch.Tensor], len(args))
        return super().__torch_function__(func, types, args, kwargs or {})


print("operators")
i, p = torch.tensor([1, 2]).as_subclass(Log), torch.tensor([1, 2])
for name in "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift lt le gt ge eq ne".split():
    print(name)
    for a, b in ((i, 2), (i, p), (p, i), (2, i)):
        getattr(operator, name)(a, b)
for name in "neg pos invert abs".split():
    print(name, type(getattr(operator, name)(i)).__name__)
print("methods and functions")
x = Log([1.0, 2.0])
for name, function in {
    "getitem": lambda: x[0], "setitem": lambda: x.__setitem__(0, 5.0), "shape": lambda: x.shape, "dim": lambda: x.dim(),
    "item": lambda: x.sum().item(), "sum": lambda: torch.sum(x, dim=0), "relu": lambda: F.relu(x),
    "linear": lambda: F.linear(x, torch.ones(2, 2)), "loss": lambda: F.cross_entropy(x, torch.tensor(0)),
    "module": lambda: torch.nn.Linear(2, 1)(x), "stack": lambda: torch.stack([x, torch.ones(2)]),
    "einsum": lambda: torch.einsum("i,i->", x, x), "norm": lambda: torch.linalg.norm(x), "bool": lambda: bool(x.sum()),
    "dtype": lambda: x.dtype, "requires_grad": lambda: x.requires_grad, "T": lambda: x.view(2, 1).T,
    "where": lambda: torch.where(x > 0, x, x), "dropout": lambda: F.dropout(x, 0.0), "float": lambda: float(x.sum()),
    "zeros_like": lambda: torch.zeros_like(x), "allclose": lambda: torch.allclose(x, x),
    "is_tensor": lambda: torch.is_tensor(x),
    "backward": lambda: x.clone().requires_grad_().sum().backward(), "back": lambda: x.as_subclass(torch.Tensor),
}.items():
    print(name)
    print("  ", type(function()).__name__)


# A mode.
class Say(TorchFunctionMode):
    def __init__(self, who):
        self.who = who

    def __torch_function__(self, func, types, args=(), kwargs=None):
        print("   ", self.who, resolve_name(func))
        return func(*args, **(kwargs or {}))


print("modes")
a = torch.ones(2)
with Say("outer"):
    torch.ones(2) + 1
    a.sum()
    F.relu(a)
    torch.tensor([1.0])
    a[0]
    F.cross_entropy(a, torch.tensor(0))
    torch.arange(3)
    with Say("inner"):
        a + 1
        torch.rand(2)
    with torch._C.DisableTorchFunctionSubclass():
        a + 1
    with torch._C.DisableTorchFunction():
        a + 1
a + 1


class Doubled(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.add else result


with Doubled():
    print(torch.add(a, 1), a + 1)


def user(x, y=1):
    if has_torch_function((x,)):
        return handle_torch_function(user, (x,), x, y=y)
    return x


print(type(user(s)).__name__, has_torch_function((a,)), has_torch_function((s,)))
print(resolve_name(torch.Tensor.add), resolve_name(torch.add), resolve_name(F.linear), resolve_name(torch.linalg.norm))
print("public functions keep their names")
for wrong in (lambda: torch.stft(torch.ones(4)), lambda: torch.istft(torch.ones(4)), lambda: torch.tensordot()):
    try:
        wrong()
    except TypeError as error:
        print(str(error).splitlines()[0].split(" missing")[0])
