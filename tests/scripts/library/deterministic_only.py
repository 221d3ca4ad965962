"""What torch.use_deterministic_algorithms refuses on the CPU, warns of, and fills unset memory with."""

import warnings

import torch
import torch.nn.functional as F


def told(call):
    try:
        print(call())
    except RuntimeError as error:
        print(error)


def put():
    return torch.ones(3).put_(torch.tensor([0]), torch.ones(1))


pooled = F.max_pool1d(torch.arange(4.0).view(1, 1, 4), 2, return_indices=True)
pooled3 = F.max_pool3d(torch.arange(8.0).view(1, 1, 2, 2, 2), 2, return_indices=True)
print(torch.are_deterministic_algorithms_enabled(), put())
torch.use_deterministic_algorithms(True)
kinds = (torch.float32, torch.float16, torch.complex64, torch.int64, torch.int8, torch.uint8, torch.bool)
for kind in kinds:
    print(torch.empty(2, dtype=kind), torch.empty_like(torch.ones(1, dtype=kind)), torch.zeros(1, dtype=kind).resize_(3))
print(torch.ones(2).new_empty(2), torch.empty_strided((2,), (3,)), torch.empty_permuted((1, 2), (1, 0)))
print(torch.ones(1).new_empty_strided((2, 2), (1, 2)), torch.zeros_like(torch.ones(2)), torch.ones(2).new_zeros(1))
told(put)
told(lambda: torch.ones(3).put_(torch.tensor([0]), torch.ones(1), accumulate=True))
told(lambda: F.max_unpool1d(*pooled, 2))
told(lambda: F.max_unpool3d(*pooled3, 2))
told(lambda: torch.ones(3).index_put_((torch.tensor([0]),), torch.zeros(1)))
told(lambda: torch.ones(3).scatter_add_(0, torch.tensor([0]), torch.ones(1)))
print(torch.utils.deterministic.fill_uninitialized_memory)
torch.utils.deterministic.fill_uninitialized_memory = False
print(bool(torch.empty(3).isnan().all()))

torch.use_deterministic_algorithms(True, warn_only=True)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(put(), [str(warning.message) for warning in caught])
print(torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled())
torch.set_deterministic_debug_mode("default")
print(put(), torch.get_deterministic_debug_mode())

torch.set_warn_always(True)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        float(torch.ones(1, requires_grad=True))
    print(len(caught), torch.is_warn_always_enabled())
