"""What a backend of one's own is handed: the graphs of a function, when they are made again, and where they end."""
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch._dynamo

graphs = []


def backend(gm, inputs):
    graphs.append(gm)
    print("GRAPH", gm.graph, gm.code, len(inputs))
    return gm.forward


def show(name, function, *calls, **options):
    torch._dynamo.reset()
    graphs.clear()
    print("-----", name)
    compiled = torch.compile(function, backend=backend, **options)
    for args in calls:
        print("->", compiled(*args))
    print(len(graphs), "graphs")


def plain(x, y):
    return torch.relu(x) * y + x.sum(dim=1, keepdim=True)


show("plain", plain, *((torch.ones(n, 3), torch.ones(n, 3)) for n in (2, 2, 4, 5)))
show("another dtype", plain, *((torch.ones(2, 2, dtype=d),) * 2 for d in (torch.float32, torch.float64, torch.float32)))
show("not dynamic", plain, *((torch.ones(n, 3), torch.ones(n, 3)) for n in (2, 4, 2)), dynamic=False)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)
        self.bn = nn.BatchNorm1d(2)
        self.scale = nn.Parameter(torch.ones(2))
        self.register_buffer("shift", torch.zeros(2))
        self.seq = nn.Sequential(nn.Linear(2, 2), nn.Tanh())

    def forward(self, x):
        return self.seq(self.bn(self.lin(x))) * self.scale + self.shift


torch.manual_seed(0)
net = Net()
x = torch.randn(4, 2)
show("module", net, (x,))
print(net.bn.running_mean, net.bn.num_batches_tracked)
loss = torch.compile(net, backend=lambda gm, inputs: gm.forward)(x).square().sum()
loss.backward()
print(net.scale.grad, net.seq[0].bias.grad)


def branch(x):
    y = x * 2
    if y.sum() > 0:
        return y + 1
    return y - 1


show("branch", branch, (torch.ones(2),), (-torch.ones(2),), (torch.ones(2),))


def says(x):
    y = x * 2
    print("hello", y.shape)
    return y + 1


show("print", says, (torch.ones(2),), (torch.ones(2),))


def broken(x):
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2


show("graph_break", broken, (torch.ones(2),))


def nested(xs, d):
    return [xs[0] + d["a"], {"k": xs[1] * 2}]


show("nested", nested, ([torch.ones(2), torch.ones(3)], {"a": torch.ones(2)}))
W = torch.ones(2)


def loops(x, n):
    for i in range(n):
        x = x + W * i
    return x


show("loops", loops, (torch.ones(2), 3), (torch.ones(2), 3), (torch.ones(2), 4))


def makes(x):
    return x + torch.zeros(2) + torch.arange(2) + torch.tensor([1.0, 2.0])


show("makes", makes, (torch.ones(2),))


def writes(x):
    x.add_(1)
    x[0] = 5
    x *= 2
    return x.view(-1)


given = torch.ones(2)
show("writes", writes, (given,))
print(given)


def modes(x):
    with torch.no_grad():
        y = x * 2
    return y + x


show("modes", modes, (torch.ones(2, requires_grad=True),))


def many(x):
    return (x.view(x.shape[0], -1).T, x.size(), x.float().to(torch.float64), F.softmax(x, dim=-1), x[:, 0], -x, 2 - x,
            x @ x.t(), torch.cat([x, x], dim=0), abs(x), x.max(dim=1)[0])


show("many", many, (torch.ones(2, 3),))
show("nothing", lambda x: x, (torch.ones(2),))
for function in (branch, broken):
    torch._dynamo.reset()
    try:
        torch.compile(function, backend=backend, fullgraph=True)(torch.ones(2))
    except torch._dynamo.exc.Unsupported as error:
        print(str(error).splitlines()[0])
    try:
        torch.compile(function, backend="eager", fullgraph=True)(torch.ones(2))
    except RuntimeError as error:
        print(type(error).__name__, str(error).splitlines()[0])
torch._dynamo.reset()
told = torch._dynamo.explain(broken)(torch.ones(2))
print(told.graph_count, told.graph_break_count, told.op_count, [len(ops) for ops in told.ops_per_graph])


@torch.compiler.disable
def left_out(x):
    return x - 1


def calls(x):
    return left_out(x * 2) * 3


show("disable", calls, (torch.ones(2),))


def swap(gm, inputs):
    for node in gm.graph.nodes:
        if node.op == "call_function" and node.target is torch.relu:
            node.target = torch.tanh
    gm.recompile()
    return gm.forward


print(torch.compile(lambda x: torch.relu(x) + 1, backend=swap)(torch.zeros(2) - 1))
x = torch.ones(3)
print(torch.compile(lambda x: F.dropout(x, 0.5), backend=lambda g, i: g.forward)(x).shape)
torch.manual_seed(1)
a = F.dropout(torch.ones(8), 0.5)
torch.manual_seed(1)
print(torch.equal(a, torch.compile(lambda x: F.dropout(x, 0.5), backend="eager")(torch.ones(8))))
