"""The hooks of a module: what each is given, in which order they run, and what they may not return."""

import torch
import torch.nn as nn

seen = []


def note(name):
    return lambda *given: seen.append((name, [type(each).__name__ for each in given]))


layer = nn.Linear(2, 2)
layer.register_state_dict_pre_hook(note("state_dict_pre"))
layer.register_state_dict_post_hook(note("state_dict_post"))
layer.register_load_state_dict_pre_hook(note("load_pre"))
layer._register_load_state_dict_pre_hook(note("own load_pre"))
layer._register_load_state_dict_pre_hook(note("own load_pre with the module"), True)
layer.register_load_state_dict_post_hook(note("load_post"))
layer.load_state_dict(layer.state_dict())

for name in ("first", "second"):
    layer.register_full_backward_hook(note(f"backward {name}"))
    layer.register_full_backward_pre_hook(note(f"backward_pre {name}"))
layer.register_full_backward_hook(note("backward in front"), True)
layer.register_full_backward_pre_hook(note("backward_pre in front"), True)
layer(torch.ones(1, 2, requires_grad=True)).sum().backward()
for line in seen:
    print(*line)

layer.register_state_dict_post_hook(lambda *given: {"other": 1})
try:
    layer.state_dict()
except RuntimeError as error:
    print(error)
other = nn.Linear(1, 1)
other._register_state_dict_hook(lambda *given: {"other": 1})
print(other.state_dict())

shared = nn.Sequential(other, other)
print(len(list(shared.modules())), len(list(shared.modules(remove_duplicate=False))))
