"""The orders of arguments that PyTorch had once: they work still, and the first one warns."""

import warnings

import torch

x, y = torch.arange(4.0).reshape(2, 2), torch.ones(2, 2)
v, b = y[0], y[None]


def said(name, run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            print(name, run())
        except (TypeError, RuntimeError) as error:
            print(name, type(error).__name__, error)
    for warning in caught:
        print("  warned:", warning.message)


w = torch.ones(3, requires_grad=True)
(w * 2).sum().backward()
said("a step of an old lesson", lambda: w.data.add_(-0.1, w.grad))
print(w)
said("add", lambda: torch.add(x, 2, y))
said("add of numbers", lambda: torch.add(2, 3, y))
said("sub_", lambda: x.clone().sub_(2, y))
for name, operands in (
    ("addmm", (y, y)), ("addmv", (y, v)), ("addr", (v, v)), ("addbmm", (b, b)), ("baddbmm", (b, b)),
):  # fmt: skip
    start = {"addmv": v, "baddbmm": b}.get(name, x)
    said(name, lambda: getattr(torch, name)(2, start, *operands))
    said(name, lambda: getattr(torch, name)(2, start, 3, *operands))
    said(name, lambda: getattr(start, name)(2, *operands))
    said(name, lambda: getattr(start.clone(), f"{name}_")(2, 3, *operands))
said("addcmul", lambda: torch.addcmul(x, 2, y, y))
said("addcdiv_", lambda: x.clone().addcdiv_(2, y, y))
said("by names", lambda: x.addmm(beta=2, mat1=y, mat2=y))
said("out", lambda: torch.add(x, 2, y, out=torch.empty(2, 2)))
said("a text", lambda: torch.add(x, "a", y))
said("too many", lambda: torch.add(x, 2, y, alpha=2))
said("a bool", lambda: torch.add(x, True, y))
said("out of place", lambda: torch.addmm(2, x, y))
torch.set_warn_always(True)
said("always", lambda: x.addcmul(2, y, y))
said("always", lambda: x.clone().addr_(2, 3, v, v))
said("always", lambda: torch.addmm(2, x, y, y))
