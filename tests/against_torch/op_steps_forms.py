"""The steps of the op programs that give arguments in other forms: by name, as lists and tensors, of other dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from op_programs import DTYPES, Inexact, OpProgram, made_as, step

NUMBERS = [0, 1, -1, 2, 3]
# name -> its arguments after the tensor: their names, and what usually stands there.
FORMS: dict[str, list[tuple[str, list[Any]]]] = {
    "sum": [("dim", [0, -1, (0,), [0], None]), ("keepdim", [True, False])],
    "mean": [("dim", [0, -1, (0,), [0], None]), ("keepdim", [True, False])],
    "amax": [("dim", [0, -1, (0,), [0]]), ("keepdim", [True, False])],
    "argmax": [("dim", [0, -1, None]), ("keepdim", [True, False])],
    "any": [("dim", [0, -1]), ("keepdim", [True, False])],
    "cumsum": [("dim", NUMBERS)],
    "transpose": [("dim0", NUMBERS), ("dim1", NUMBERS)],
    "unsqueeze": [("dim", NUMBERS)],
    "squeeze": [("dim", [0, 1, (0,), (0, 1), [-1]])],
    "flatten": [("start_dim", NUMBERS), ("end_dim", NUMBERS)],
    "reshape": [("shape", [(-1,), [1, -1], (2, -1), (0,)])],
    "permute": [("dims", [(0,), (1, 0), [0, 1], (0, 2, 1), ()])],
    "narrow": [("dim", [0, -1]), ("start", NUMBERS), ("length", [0, 1, 2])],
    "select": [("dim", [0, -1]), ("index", NUMBERS)],
    "chunk": [("chunks", [1, 2, 0]), ("dim", NUMBERS)],
    "unbind": [("dim", NUMBERS)],
    "roll": [("shifts", [1, (1,), (1, -1), [2]]), ("dims", [0, (0,), (0, 1), [1]])],
    "flip": [("dims", [(0,), [0, 1], (), (-1,), (0, 0)])],
    "tril": [("diagonal", NUMBERS)],
    "diagonal": [("offset", NUMBERS), ("dim1", NUMBERS), ("dim2", NUMBERS)],
    "movedim": [("source", [0, (0, 1), [1]]), ("destination", [1, (1, 0), [0]])],
    "clamp": [("min", [0, -1.5, None]), ("max", [1, 2.5, None])],
    "add": [("other", [1, 2.5, True, 1j])],
    "mul": [("other", [1, 2.5, True])],
    "masked_fill": [("mask", [True]), ("value", [1, 2.5])],
    "topk": [("k", [0, 1, 2]), ("dim", NUMBERS), ("largest", [True, False])],
    "kthvalue": [("k", [1, 2]), ("dim", NUMBERS), ("keepdim", [True, False])],
    "logsumexp": [("dim", [0, (0,), (0, 1)]), ("keepdim", [True, False])],
    "repeat_interleave": [("repeats", [1, 2, 0]), ("dim", NUMBERS)],
    "diff": [("n", [1, 2, 0]), ("dim", NUMBERS)],
    "softmax": [("dim", NUMBERS)],
    "round": [("decimals", [0, 1, -1])],
    "nan_to_num": [("nan", [0, 1.5, None]), ("posinf", [2, None]), ("neginf", [-2, None])],
    "swapaxes": [("axis0", NUMBERS), ("axis1", NUMBERS)],
    "tile": [("dims", [(2,), (1, 2), [2]])],
    "all": [("dim", [0, -1]), ("keepdim", [True, False])],
    "prod": [("dim", [0, -1]), ("keepdim", [True, False])],
}
IN_ORDER = {"reshape", "permute", "flip", "tile"}  # methods that take a list as separate numbers, too


def odd(p: OpProgram) -> Any:
    """Something that seldom fits."""
    one = p.random.choice(["a", None, 1.5, True, (), [0, 1], (0, "a"), {}, -7, p.torch.float32, object, 1j])
    p.words.append(f"odd {one!r}")
    return one


def as_tensor(p: OpProgram, value: Any) -> Any:
    """A number as a 0-d tensor, which may stand for it."""
    if not isinstance(value, (int, float)):
        return value
    p.words.append("as a tensor")
    return p.torch.tensor(value)


@step(5)
def formed(p: OpProgram) -> Any:
    """A call by position or by name, with seldom an argument that does not fit or is too many."""
    one, name = p.tensor(), p.pick(FORMS)
    given = FORMS[name][: p.random.randrange(len(FORMS[name]) + 1)] if p.chance(0.3) else FORMS[name]
    values = [(key, p.pick(choices)) for key, choices in given]
    values = [(key, odd(p) if p.chance(0.06) else as_tensor(p, v) if p.chance(0.06) else v) for key, v in values]
    cut = p.random.randrange(len(values) + 1)
    p.words.append(f"{cut} by position")
    args, named = [v for _, v in values[:cut]], dict(values[cut:])
    if len(named) < 2 and p.chance(0.05):  # of several that do not fit PyTorch names any one, in any order
        named[p.random.choice(["unknown", "input", "dtype", "axis"])] = p.random.choice([1, None])
        p.words.append(repr(named))
    if name == "nan_to_num" and one.is_complex():
        one = one.real
    if name in IN_ORDER and args and isinstance(args[0], (tuple, list)) and p.chance(0.3):
        return Inexact(getattr(one, name)(*args[0], **named))
    if p.chance(0.5):
        return Inexact(getattr(one, name)(*args, **named))
    return Inexact(getattr(p.torch, name)(one, *args, **named))


# Two matrices of different dtypes, as a layer and its input have them when one of the two was converted.
MIXED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "layer_norm": lambda nn, a, b: nn.layer_norm(a, (4,), b[0]),
    "layer_norm_bias": lambda nn, a, b: nn.layer_norm(a, (4,), None, b[0]),
    "group_norm": lambda nn, a, b: nn.group_norm(a, 2, b[0]),
    "batch_norm": lambda nn, a, b: nn.batch_norm(a, b[0], b[1], training=True),
    "batch_norm_weight": lambda nn, a, b: nn.batch_norm(a, a[0], a[1], b[0], b[0]),
    "rms_norm": lambda nn, a, b: nn.rms_norm(a, (4,), b[0]),
    "linear": lambda nn, a, b: nn.linear(a, b),
    "linear_bias": lambda nn, a, b: nn.linear(a, a, b[0]),
    "conv1d": lambda nn, a, b: nn.conv1d(a[None], b[None]),
    "conv2d": lambda nn, a, b: nn.conv2d(a[None, None], b[None, None]),
    "conv2d_bias": lambda nn, a, b: nn.conv2d(a[None, None], a[None, None], b[0, :1]),
    "conv_transpose2d": lambda nn, a, b: nn.conv_transpose2d(a[None, None], b[None, None]),
    "bilinear": lambda nn, a, b: nn.bilinear(a, a, b[None]),
    "grid_sample": lambda nn, a, b: nn.grid_sample(a[None, None], b.reshape(1, 2, 4, 2)),
    "prelu": lambda nn, a, b: nn.prelu(a[None], b[0]),
    "mse_loss": lambda nn, a, b: nn.mse_loss(a, b),
    "smooth_l1_loss": lambda nn, a, b: nn.smooth_l1_loss(a, b),
    "huber_loss": lambda nn, a, b: nn.huber_loss(a, b),
    "with_logits": lambda nn, a, b: nn.binary_cross_entropy_with_logits(a, b),
    "cosine_similarity": lambda nn, a, b: nn.cosine_similarity(a, b),
}


@step(2, "calls")
def of_two_dtypes(p: OpProgram) -> Any:
    """What comes of two dtypes, or how they are refused."""
    name, first, second = p.pick(MIXED), p.pick(DTYPES), p.pick(DTYPES)
    one, other = (made_as(p, (4, 4), kind) for kind in (first, second))
    found = MIXED[name](p.torch.nn.functional, one, other)
    return [p.kind(found), tuple(found.shape), found.stride()]
