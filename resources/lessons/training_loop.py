# A training loop by hand: forward, backward, step.
import torch

torch.manual_seed(0)
x = torch.randn(8, 3)
goal = x @ torch.tensor([[1.], [-2.], [0.5]])
w = torch.zeros(3, 1, requires_grad=True)

for epoch in range(3):
    error = x @ w - goal
    loss = (error * error).mean()
    loss.backward()              # the graph of this round is walked, then freed
    with torch.no_grad():        # the update itself must not join the graph
        w -= 0.1 * w.grad        # in place: w stays the same leaf
    w.grad = None                # or the next backward would add to it
    print(epoch, round(loss.item(), 4))
