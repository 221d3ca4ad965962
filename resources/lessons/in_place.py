# In place: each write raises the storage's version, and backward checks what it saved.
import torch

w = torch.tensor([1., 2., 3.], requires_grad=True)
y = w.exp()          # ExpBackward0 keeps its result at version 0
z = y * 2

total = z.sum()
total.backward()     # fine: y is still at version 0
print(w.grad)

w.grad = None
y = w.exp()
y.mul_(2)            # version 1: the saved result is gone
try:
    y.sum().backward()
except RuntimeError as error:
    print(str(error).split(":")[0])
