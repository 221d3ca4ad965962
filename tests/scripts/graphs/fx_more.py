"""Graphs in courses: a pass that swaps activations, fusing conv and batch norm, quantities by node, deep copies."""
import copy
import operator
import torch
import torch.fx
from torch import fx, nn
import torch.nn.functional as F
from torch.fx import symbolic_trace
from torch.fx.proxy import TraceError


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4 * 4 * 4, 3)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        x = F.relu(self.bn(self.conv(x)))
        x = F.max_pool2d(x, 2)
        x = torch.flatten(x, 1)
        return self.fc(x) * self.scale


torch.manual_seed(0)
net = Net().eval()
x = torch.randn(2, 1, 8, 8)
gm = symbolic_trace(net)
print(torch.equal(gm(x), net(x)), [n.op for n in gm.graph.nodes])
for node in gm.graph.nodes:
    if node.op == "call_function" and node.target is F.relu:
        with gm.graph.inserting_after(node):
            new = gm.graph.call_function(torch.tanh, args=(node.args[0],))
        node.replace_all_uses_with(new)
        gm.graph.erase_node(node)
gm.graph.lint()
gm.recompile()
print(gm.code, torch.equal(gm(x), net(x)))
gm.add_submodule("head.act", nn.Sigmoid())
out = gm.graph.output_node()
with gm.graph.inserting_before(out):
    act = gm.graph.call_module("head.act", (out.args[0],))
out.args = (act,)
gm.recompile()
print(gm, gm(x).min() > 0)
gm.delete_all_unused_submodules()
print(gm.delete_submodule("nothing"), [n for n, _ in gm.named_modules()])
twin = copy.deepcopy(gm)
print(torch.equal(twin(x), gm(x)), twin.graph is gm.graph, type(twin).__name__)


class Counter(fx.Interpreter):
    def __init__(self, gm):
        super().__init__(gm)
        self.calls = []

    def run_node(self, n):
        self.calls.append(n.name)
        return super().run_node(n)


counter = Counter(gm)
counter.run(x)
print(counter.calls)
for n in gm.graph.find_nodes(op="call_module"):
    print(n, n.target, n.all_input_nodes, list(n.users), n.next, n.prev)


def branches(x, flag=False):
    if flag:
        return x.sum()
    a, b = torch.chunk(x, 2)
    return torch.stack([a, b], dim=0), {"mean": x.mean(dim=1, keepdim=True)}


print(symbolic_trace(branches, concrete_args={"flag": False}).code, symbolic_trace(branches, concrete_args={"flag": True}).code)
try:
    symbolic_trace(lambda x: [y for y in x])
except TraceError as error:
    print(str(error)[:40])
trial = symbolic_trace(lambda a, b: operator.iadd(a, b))
print(trial.code)
with trial.graph.on_generate_code(lambda _: lambda body: ["print('running')\n", *body]):
    trial.recompile()
trial(torch.ones(1), torch.ones(1))
lstm = symbolic_trace(nn.Sequential(nn.LSTM(2, 3), ))
print(lstm.graph)


class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        scores = self.q(x) @ self.k(x).transpose(-2, -1) / 4 ** 0.5
        mask = torch.tril(torch.ones(3, 3))
        scores = scores.masked_fill(mask == 0, float("-inf"))
        return F.softmax(scores, dim=-1) @ x


att = symbolic_trace(Attend())
print(att.code, list(att.state_dict()))
print(att.print_readable(print_output=False))
print(fx.map_arg((1, [out]), lambda n: n.name) if False else "done")
