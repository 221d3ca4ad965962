"""Tensors and bools as sizes, what argument errors list, and writes through negated and conjugated views."""

import warnings

import torch

warnings.simplefilter("ignore")


def told(name, call):
    try:
        print(name, call())
    except Exception as error:
        print(name, type(error).__name__, error)


x = torch.zeros(2, 3)
sizes = {
    "scalar": torch.tensor(3),
    "one element": torch.tensor([2]),
    "matrix of one": torch.tensor([[3]]),
    "bool": torch.tensor(True),
    "float": torch.tensor(2.0),
    "two": torch.tensor([1, 2]),
    "True": True,
    "3": 3,
}
for method in ("expand", "permute", "reshape", "repeat", "flip"):
    for first, size in sizes.items():
        for second, other in sizes.items():
            told(f"{method} {first}, {second}:", lambda: tuple(getattr(x, method)(size, other).shape))
            told(f"{method} ({first}, {second}):", lambda: tuple(getattr(x, method)((size, other)).shape))

v = torch.ones(3)
for name in ("add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide", "copy_",
             "float_power_", "narrow", "argsort", "count_nonzero", "addcmul", "any"):  # fmt: skip
    method = getattr(v, name)
    for args, options in (((1, 2, 3), {}), ((v, v, v, v), {}), (("x",), {}), ((v,), {"dim": "x"}), ((2.5,), {"no": 1})):
        told(f"{name} {len(args)} {list(options)}:", lambda: method(*args, **options).shape)
told("async:", lambda: torch.zeros(2).copy_(torch.ones(2), **{"async": True}))

for name in ("abs_", "logical_not_", "neg_", "zero_"):
    z = torch.tensor([1 - 2j, 3 + 4j, -1 + 0j])
    told(f"{name} of a negated view:", lambda: getattr(z.conj().imag, name)().tolist())
    print(z.tolist())
for name in ("eq_", "lt_", "logical_xor_", "mul_", "copy_", "fmod_"):
    z = torch.tensor([1 - 2j, 3 + 4j, -1 + 0j])
    told(f"{name} of a negated view:", lambda: getattr(z.conj().imag, name)(torch.tensor([2.0, 0.0, 1.0])).tolist())
    print(z.tolist())

print(torch.ldexp(torch.tensor([-3 - 2j, 1j, 2 + 0j]), torch.tensor([float("inf"), 2.0, -float("inf")])))

for indices, value in (
    (([0, 1, 9, 2],), 1.0), (([3, -9, 2],), 5.0), (([[0, 1], [2, 9], [3, 3]],), torch.tensor([1.0, 2.0])),
):  # fmt: skip
    y = torch.zeros(4)
    told("written before the index that is outside:", lambda: y.__setitem__(torch.tensor(indices[0]), value))
    print(y)
for key in (([0, 5], [1, 1]), (slice(None), [0, 5]), ([1, 0, 5],), (slice(None), [1, 0, 5])):
    y = torch.zeros(2, 2)
    told("written before:", lambda: y.__setitem__(tuple(torch.tensor(k) if isinstance(k, list) else k for k in key), 3))
    print(y)
