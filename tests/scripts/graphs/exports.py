"""Modules as graphs of aten ops: what their inputs and outputs are, what they check, what they refuse."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.export import Dim, export


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 2)
        self.conv = nn.Conv2d(1, 2, 3)
        self.register_buffer("b", torch.ones(2))

    def forward(self, x, y):
        h = F.max_pool2d(self.conv(y).relu(), 2).flatten(1)
        return (self.lin(x) * self.b + 1, h.sum(dim=1), F.softmax(x, -1), torch.cat([x, x]), x.view(-1), x[:, 0],
                x.reshape(3, 2), x @ x.t(), 2 * x, x - 1, F.dropout(x, 0.1, self.training), x.mean(), x.max(1)[0])


torch.manual_seed(0)
net = Net().eval()
args = (torch.ones(2, 3), torch.ones(2, 1, 6, 6))
program = export(net, args)
print(program.graph, program.graph_signature)
signature = program.graph_signature
print(signature.user_inputs, signature.parameters, signature.buffers, signature.user_outputs)
print(signature.inputs_to_parameters, signature.inputs_to_buffers, list(program.state_dict), program.range_constraints)
print(all(torch.equal(a, b) for a, b in zip(program.module()(*args), net(*args))), program.graph_module.code)
print([(spec.kind.name, spec.arg.name if hasattr(spec.arg, "name") else spec.arg) for spec in signature.input_specs])


class ByShape(nn.Module):
    def forward(self, x):
        if x.shape[0] > 1:
            return x[:, 1:]
        return x + 5


module = export(ByShape(), (torch.ones(3, 2),)).module()
for given in (torch.ones(1, 2), torch.ones(3, 2), torch.ones(3, 4)):
    try:
        print(module(given).shape)
    except AssertionError as error:
        print(error)
for wrong in ((), (torch.ones(3, 2), 1)):
    try:
        module(*wrong)
    except ValueError as error:
        print(str(error)[:60])


class ByValue(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x - 1


class Asks(nn.Module):
    def forward(self, x):
        return x * int(x.sum())


try:
    export(ByValue(), (torch.ones(2),))
except RuntimeError as error:
    print(type(error).__name__, str(error).splitlines()[0])
print(Dim("batch"), Dim("n", max=5), Dim.DYNAMIC, Dim.AUTO, torch.export.dims("a", "b"))


class Plain(nn.Module):
    def forward(self, x):
        return F.gelu(x * 2)


batch = Dim("batch")
for shapes in (({0: batch},), {"x": {0: batch}}):
    program = export(Plain(), (torch.ones(3, 2),), dynamic_shapes=shapes)
    print(program.module()(torch.ones(5, 2)).shape)
    try:
        program.module()(torch.ones(5, 3))
    except AssertionError as error:
        print(error)
try:
    export(lambda x: x, (torch.ones(1),))
except ValueError as error:
    print(error)


class Keywords(nn.Module):
    def forward(self, x, *, k):
        x = x.clone()
        x.add_(1)
        return {"o": x * k, "l": [x, x + 1]}


program = export(Keywords(), (torch.ones(2),), {"k": torch.ones(1)})
print(program.graph, program.module()(torch.zeros(2), k=torch.ones(1) * 3))
try:
    program(torch.ones(2))
except RuntimeError as error:
    print(error)
