"""How PyTorch's Python functions hand a call on to what overrides them: tensors by position, the rest by keyword."""

from __future__ import annotations

import inspect
from typing import Any

from stridescope.engine.torch._watched_calls import PLACE
from stridescope.engine.torch.fx.qualified import module_of, plain_name

# Arguments by position, where it is not one: as many as PyTorch's own functions pass on that way.
_BY_POSITION = {
    **dict.fromkeys(("max_unpool1d", "max_unpool2d", "max_unpool3d", "lp_pool1d", "lp_pool2d", "lp_pool3d"), 3),
    **dict.fromkeys(("batch_norm", "gaussian_nll_loss", "linear_cross_entropy", "margin_ranking_loss", "fold"), 3),
    **dict.fromkeys(("cosine_embedding_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss"), 3),
    **dict.fromkeys(("threshold",), 3), "ctc_loss": 4, "multi_head_attention_forward": 13,
    **dict.fromkeys((
        "fractional_max_pool2d", "fractional_max_pool3d", "max_pool1d", "max_pool2d", "max_pool3d",
        "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", "adaptive_avg_pool2d",
        "adaptive_avg_pool3d", "embedding", "embedding_bag", "layer_norm", "rms_norm", "group_norm",
        "local_response_norm", "nll_loss", "poisson_nll_loss", "kl_div", "cross_entropy", "binary_cross_entropy",
        "binary_cross_entropy_with_logits", "smooth_l1_loss", "huber_loss", "l1_loss", "mse_loss",
        "hinge_embedding_loss", "multilabel_margin_loss", "soft_margin_loss", "multilabel_soft_margin_loss",
        "multi_margin_loss", "grid_sample", "affine_grid", "pad", "unfold",
    ), 2),
}  # fmt: skip
# What PyTorch calls the operators' methods of a tensor in a graph; the others keep their name.
_METHODS = {
    "__add__": "add", "__radd__": "add", "__sub__": "sub", "__mul__": "mul", "__rmul__": "mul", "__truediv__": "div",
    "__matmul__": "matmul", "__eq__": "eq", "__ne__": "ne", "__lt__": "lt", "__le__": "le", "__gt__": "gt",
    "__ge__": "ge", "__iadd__": "add_", "__isub__": "sub_", "__imul__": "mul_", "__neg__": "neg", "__abs__": "abs",
}  # fmt: skip
_SIGNATURES: dict[int, inspect.Signature] = {}


def method_name(method: str) -> str:
    """The name that a method of Tensor has in a graph."""
    return _METHODS.get(method, method)


def _signature(function: Any) -> inspect.Signature:
    """The function's own signature, which the watcher's code hides while it stands there."""
    made = _SIGNATURES.get(id(function))
    if made is None:
        watchers = [c for c in function.__code__.co_consts if hasattr(c, "args")]
        true = watchers[0].args[2] if watchers and PLACE not in function.__code__.co_consts else function
        made = _SIGNATURES[id(function)] = inspect.signature(true)
    return made


def _pad(input: Any, pad: Any, mode: str = "constant", value: Any = None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A function of Python in PyTorch, and an op here."""
    return (input, pad), {"mode": mode, "value": value}


def as_handed_on(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call as a node keeps them."""
    if plain_name(function) == "pad" and module_of(function) == "torch.nn.functional":
        return _pad(*args, **kwargs)
    if not hasattr(function, "__code__") or module_of(function) != "torch.nn.functional":
        return args, kwargs
    signature = _signature(function)
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    values = bound.arguments
    count = _BY_POSITION.get(plain_name(function), 1)
    names = list(signature.parameters)
    named = {name: values[name] for name in names[count:] if name in values}
    return tuple(values[name] for name in names[:count]), named
