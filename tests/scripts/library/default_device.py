"""Where factories put new tensors inside a block of torch.device and after torch.set_default_device."""
import numpy as np
import torch

FACTORIES = {
    "ones": lambda: torch.ones(2), "tensor": lambda: torch.tensor(1.0), "randn": lambda: torch.randn(3),
    "arange": lambda: torch.arange(3), "as_tensor": lambda: torch.as_tensor([1.0]),
    "asarray": lambda: torch.asarray([1.0]),
    "eye": lambda: torch.eye(2), "full": lambda: torch.full((2,), 1), "linspace": lambda: torch.linspace(0, 1, 2),
    "logspace": lambda: torch.logspace(0, 1, 2), "randperm": lambda: torch.randperm(3),
    "randint": lambda: torch.randint(0, 2, (2,)), "hann_window": lambda: torch.hann_window(3),
    "tril_indices": lambda: torch.tril_indices(2, 2), "fftfreq": lambda: torch.fft.fftfreq(3),
    "empty_strided": lambda: torch.empty_strided((1,), (1,)), "scalar_tensor": lambda: torch.scalar_tensor(1.0),
    "new_ones": lambda: torch.empty(1).new_ones(1), "Linear": lambda: torch.nn.Linear(2, 2).weight,
    "normal": lambda: torch.normal(0.0, 1.0, (2,)), "Tensor": lambda: torch.Tensor([1.0]),
    "FloatTensor": lambda: torch.FloatTensor([1.0]), "from_numpy": lambda: torch.from_numpy(np.ones(2)),
    "device=": lambda: torch.zeros(2, device="cpu"), "like": lambda: torch.ones_like(torch.zeros(1, device="cpu")),
}
with torch.device("meta") as d:
    print(type(d).__name__, torch.get_default_device())
    for name, factory in FACTORIES.items():
        print(name, factory().device)
    with torch.device("cpu"):
        print("inner", torch.ones(2).device)
    print("outer again", torch.ones(2).device)
print("after", torch.ones(1).device)
try:
    with torch.device("meta"):
        raise ValueError
except ValueError:
    print("after an error", torch.ones(1).device)
torch.set_default_device("meta")
print("set", torch.ones(1).device, torch.get_default_device())
with torch.device("cpu"):
    print("block", torch.ones(1).device)
torch.set_default_device(None)
print("unset", torch.ones(1).device, torch.get_default_device())
