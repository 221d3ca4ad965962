# View or copy? A view looks into the same bytes; a copy gets bytes of its own.
import torch

x = torch.arange(6.)
rows = x.view(2, 3)          # same bytes, other shape
columns = rows.t()           # same bytes, strides swapped

# reshape gives a view where the strides allow it, and a copy where they do not.
flat = rows.reshape(6)       # a view: the elements already lie in this order
copied = columns.reshape(6)  # a copy: they do not

x[0] = 100.                  # seen through every view, but not in the copy
print(flat[0].item(), copied[0].item())

# expand repeats a row without storing it twice: its stride is 0.
wide = torch.tensor([[1.], [2.]]).expand(2, 4)
print(wide.stride(), wide.contiguous().stride())
