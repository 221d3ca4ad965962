"""Traces keep one run, scripts keep the program; what a trace may have got wrong is said, what a script lacks refused."""
import io
import sys
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F


def told(run):
    """What a call warns of, without the deprecations, and the error that it raises."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = run()
        except Exception as error:
            print(type(error).__name__, str(error).replace(__file__, "FILE"))
            result = None
    said = set()
    for each in caught:
        if str(each.message) in said:
            continue
        said.add(str(each.message))
        if each.category is torch.jit.TracerWarning:
            print(f"line {each.lineno}: {str(each.message)[:150]}")
        elif each.category is DeprecationWarning and "jit" in str(each.message):
            print(each.message)
    return result


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)
        self.register_buffer("shift", torch.ones(2))
        self.times = 3

    def forward(self, x):
        x = F.relu(self.lin(x)) + self.shift
        for _ in range(self.times):
            x = x * 2
        return x

    @torch.jit.export
    def other(self, x):
        return x + self.times


torch.manual_seed(0)
net = Net()
x = torch.randn(3, 2)
traced = told(lambda: torch.jit.trace(net, x))
print(torch.equal(traced(x), net(x)), list(traced.state_dict()), isinstance(traced, torch.jit.ScriptModule), traced)
with torch.no_grad():
    net.lin.weight.zero_()
print(torch.equal(traced(x), net(x)), torch.equal(traced.lin.weight, net.lin.weight))
traced(x).sum().backward()
print(net.lin.bias.grad)
scripted = told(lambda: torch.jit.script(net))
print(scripted, scripted.original_name, scripted.times, torch.equal(scripted(x), net(x)), scripted.other(torch.ones(1)))
print(scripted.training, scripted.eval().training, isinstance(scripted, nn.Module))
try:
    scripted.nothing
except AttributeError as error:
    print(error)


def by_value(x):
    if x.sum() > 0:
        return x * 10
    return x - 1


def asks(x):
    return x * x.sum().item() + float(x[0]) + len(x) + int(x[0])


def walks(x):
    s = 0
    for row in x:
        s = s + row
    return s


def sizes(x):
    return x.view(x.shape[0] * x.shape[1]), x.size(0) * x, x.reshape(-1, x.size(1) // 1)


def makes(x):
    return x + torch.tensor(3.0)


def halves(x):
    a, b = x.chunk(2)
    return a + b, x.max(dim=0)[0]


def writes(x):
    y = x.clone()
    y[0] = 7
    y += 1
    y.mul_(2)
    return y


for function, example, other in (
    (by_value, torch.ones(2), -torch.ones(2)), (asks, torch.ones(2), torch.zeros(2)), (walks, torch.ones(2, 2), torch.zeros(2, 3)),
    (sizes, torch.ones(2, 3), torch.ones(4, 3)), (makes, torch.ones(2), torch.zeros(2)), (halves, torch.ones(2, 2), torch.ones(4, 2)),
    (writes, torch.ones(2), torch.zeros(3)),
):
    print("-----", function.__name__)
    trace = told(lambda: torch.jit.trace(function, example, check_trace=False))
    print(trace(example), trace(other), torch.jit.is_tracing())


@torch.jit.script
def loops(x, n: int):
    for i in range(n):
        x = x + i
    if n > 2:
        x = x * 2
    return x


print(loops(torch.zeros(2), 3), loops(torch.zeros(2), 1), loops.name, isinstance(loops, torch.jit.ScriptFunction))
told(lambda: loops(torch.zeros(2), "a"))
told(lambda: loops(3, 3))
told(lambda: loops(torch.zeros(2)))
told(lambda: loops(torch.zeros(2), 1, 2))


def tries(x):
    try:
        return x
    except ValueError:
        return x + 1


def takes_many(x, *rest):
    return x


def undefined(x):
    return no_such_thing(x)


def where():
    return torch.jit.is_scripting()


for function in (tries, takes_many, undefined):
    told(lambda: torch.jit.script(function))
print(torch.jit.is_scripting(), torch.jit.annotate(int, 3))
told(lambda: torch.jit.trace(lambda x: {"a": x}, torch.ones(2)))
told(lambda: torch.jit.trace(makes, torch.ones(2))("a"))
frozen = told(lambda: torch.jit.freeze(scripted.eval()))
print(torch.equal(frozen(x), net(x)))
told(lambda: torch.jit.trace(lambda x: x + torch.rand(3), torch.ones(3), check_trace=False))
