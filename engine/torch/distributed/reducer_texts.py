"""What the Reducer says when gradients do not come as it expects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stridescope.engine.tensor import Tensor

CHANGED = (
    "Your training graph has changed in this iteration, e.g., one parameter is unused in first iteration, but then got "
    "used in the second iteration. this is not compatible with static_graph set to True."
)
NOTHING_UNUSED = (
    "find_unused_parameters=True was specified in DDP constructor, but did not find any unused parameters in the "
    "forward pass. This flag results in an extra traversal of the autograd graph every iteration,  which can adversely "
    "affect performance. If your model indeed never has any unused parameters in the forward pass, consider turning "
    "this flag off. Note that this warning may be a false positive if your model has flow control causing later "
    "iterations to have unused parameters."
)
_OUTPUTS = "making sure all `forward` function outputs participate in calculating loss. \n"


def unfinished(finds_unused: bool, rank: int, missing: Sequence[int]) -> str:
    """Gradients of the iteration before did not come."""
    if finds_unused:
        cure = (
            "Since `find_unused_parameters=True` is enabled, this likely  means that not all `forward` outputs "
            "participate in computing loss. You can fix this by \n"
        )
    else:
        cure = (
            "You can enable unused parameter detection by passing the keyword argument `find_unused_parameters=True` "
            "to `torch.nn.parallel.DistributedDataParallel`, and by \n"
        )
    return (
        "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates "
        f"that your module has parameters that were not used in producing loss. {cure}{_OUTPUTS}"
        "If you already have done the above, then the distributed data parallel module wasn't able to locate the "
        "output tensors in the return value of your module's `forward` function. Please include the loss function and "
        "the structure of the return value of `forward` of your module when reporting this issue (e.g. list, dict, "
        f"iterable).\nParameter indices which did not receive grad for rank {rank}: {' '.join(map(str, missing))}\n"
        " In addition, you can set the environment variable TORCH_DISTRIBUTED_DEBUG to either INFO or DETAIL to print "
        "out information about which particular parameters did not receive gradient on this rank as part of this error"
    )


def marked_twice(index: int, name: str) -> str:
    """A parameter got a second gradient in one iteration."""
    return (
        "Expected to mark a variable ready only once. This error is caused by one of the following reasons: 1) Use of "
        "a module parameter outside the `forward` function. Please make sure model parameters are not shared across "
        "multiple concurrent forward-backward passes. or try to use _set_static_graph() as a workaround if this module "
        "graph does not change during training loop.2) Reused parameters in multiple reentrant backward passes. For "
        "example, if you use multiple `checkpoint` functions to wrap the same part of your model, it would result in "
        "the same set of parameters been used by different reentrant backward passes multiple times, and hence marking "
        "a variable ready multiple times. DDP does not support such use cases in default. You can try to use "
        "_set_static_graph() as a workaround if your module graph does not change over iterations.\n"
        f"Parameter at index {index} with name {name} has been marked as ready twice. This means that multiple "
        "autograd engine  hooks have fired for this particular parameter during this iteration."
    )


def not_a_future(value: Any) -> str:
    """A communication hook gave something else."""
    kind = "torch.Tensor" if isinstance(value, Tensor) else type(value).__name__
    return f"DDP communication hook's callback must return a torch.futures.Future object, but got {kind}"
