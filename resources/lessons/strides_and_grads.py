import torch
a = torch.arange(12.).reshape(3, 4)
b = a.t()
w = torch.randn(4, 2, requires_grad=True)
c = b[1:, ::2]
y = (a @ w).relu()
loss = y.pow(2).mean()
loss.backward()
# c shares a's storage: offset 1
