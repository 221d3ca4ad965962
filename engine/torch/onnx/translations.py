"""What each aten op is in ONNX (opset 20)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from stridescope.engine.torch.onnx.builder import Builder, example
from stridescope.engine.torch.onnx.protobuf import DATA_TYPES

Translation = Callable[..., Any]
# Ops with one tensor in and the same operator in ONNX.
SAME = {
    "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "neg": "Neg",
    "abs": "Abs", "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan",
    "sinh": "Sinh", "cosh": "Cosh", "erf": "Erf", "floor": "Floor", "ceil": "Ceil", "round": "Round", "sign": "Sign",
    "reciprocal": "Reciprocal", "mish": "Mish", "hardswish": "HardSwish", "logical_not": "Not", "isnan": "IsNaN",
    "isinf": "IsInf", "relu_": "Relu",
}  # fmt: skip
# Ops of two operands, either of which may be a number.
PAIRS = {
    "mul": "Mul", "div": "Div", "pow": "Pow", "maximum": "Max", "minimum": "Min", "eq": "Equal", "gt": "Greater",
    "lt": "Less", "ge": "GreaterOrEqual", "le": "LessOrEqual", "logical_and": "And", "logical_or": "Or",
    "logical_xor": "Xor",
}  # fmt: skip
# Ops that change nothing that ONNX knows of.
NOTHING = ("clone", "contiguous", "detach", "alias", "lift_fresh_copy", "dropout", "dropout2d", "feature_dropout")


def _pair(op_type: str) -> Translation:
    def translate(b: Builder, this: Any, other: Any, **_: Any) -> Any:
        return b.add(op_type, b.get(this), b.like(other, this))

    return translate


def _one(op_type: str) -> Translation:
    return lambda b, this: b.add(op_type, b.get(this))


def _itself(b: Builder, this: Any, *_: Any, **__: Any) -> Any:
    return b.get(this)


def _dropout(b: Builder, this: Any, p: float, train: bool) -> Any:
    if not train or not p:
        return b.get(this)
    return b.add("Dropout", b.get(this), b.constant(float(p)), b.constant(True))


def _scaled(op_type: str) -> Translation:
    """``add`` and ``sub`` with their factor."""

    def translate(b: Builder, this: Any, other: Any, alpha: float = 1) -> Any:
        right = b.like(other, this)
        if alpha != 1:
            right = b.add("Mul", right, b.like(alpha, this))
        return b.add(op_type, b.get(this), right)

    return translate


def _rsub(b: Builder, this: Any, other: Any, alpha: float = 1) -> Any:
    return b.add("Sub", b.like(other, this), b.get(this))


def _ne(b: Builder, this: Any, other: Any) -> Any:
    return b.add("Not", b.add("Equal", b.get(this), b.like(other, this)))


def _linear(b: Builder, this: Any, weight: Any, bias: Any = None) -> Any:
    if example(this).dim() == 2 and bias is not None:
        return b.add("Gemm", b.get(this), b.get(weight), b.get(bias), transB=1, alpha=1.0, beta=1.0)
    product = b.add("MatMul", b.get(this), b.add("Transpose", b.get(weight), perm=[1, 0]))
    return product if bias is None else b.add("Add", product, b.get(bias))


def _addmm(b: Builder, bias: Any, left: Any, right: Any, beta: float = 1, alpha: float = 1) -> Any:
    return b.add("Gemm", b.get(left), b.get(right), b.get(bias), alpha=float(alpha), beta=float(beta))


def _matmul(b: Builder, left: Any, right: Any) -> Any:
    return b.add("MatMul", b.get(left), b.get(right))


def _both(values: Any, count: int) -> list[int]:
    listed = list(values) if isinstance(values, (list, tuple)) else [values]
    return listed * count if len(listed) == 1 else listed


def _conv(spatial: int) -> Translation:
    def translate(
        b: Builder, this: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Any:  # fmt: skip
        options: dict[str, Any] = {"auto_pad": "SAME_UPPER" if padding == "same" else "VALID"}
        if not isinstance(padding, str):
            options = {"auto_pad": "NOTSET", "pads": _both(padding, spatial) * 2}
        return b.add(
            "Conv", b.get(this), b.get(weight), b.get(bias), strides=_both(stride, spatial),
            dilations=_both(dilation, spatial), group=groups, **options,
        )  # fmt: skip

    return translate


def _max_pool(spatial: int) -> Translation:
    def translate(
        b: Builder, this: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Any:  # fmt: skip
        kernel = _both(kernel_size, spatial)
        return b.add(
            "MaxPool", b.get(this), kernel_shape=kernel, strides=_both(stride, spatial) if stride else kernel,
            pads=_both(padding, spatial) * 2, dilations=_both(dilation, spatial), ceil_mode=int(ceil_mode),
        )  # fmt: skip

    return translate


def _avg_pool(spatial: int) -> Translation:
    def translate(
        b: Builder, this: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> Any:  # fmt: skip
        kernel = _both(kernel_size, spatial)
        return b.add(
            "AveragePool", b.get(this), kernel_shape=kernel, strides=_both(stride, spatial) if stride else kernel,
            pads=_both(padding, spatial) * 2, ceil_mode=int(ceil_mode), count_include_pad=int(count_include_pad),
        )  # fmt: skip

    return translate


def _adaptive_avg_pool(b: Builder, this: Any, output_size: Any) -> Any:
    sizes = output_size if isinstance(output_size, (list, tuple)) else [output_size]
    if any(size != 1 for size in sizes):
        raise NotImplementedError(
            "an adaptive pooling to more than one element is not in Stridescope's ONNX export yet"
        )
    return b.add("GlobalAveragePool", b.get(this))


def _batch_norm(
    b: Builder, this: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float,
    *_: Any,
) -> Any:  # fmt: skip
    if training:
        raise NotImplementedError("a batch norm that trains is not in Stridescope's ONNX export yet: call model.eval()")
    sized = example(mean)
    scale = b.get(weight) if weight is not None else b.constant(sized.new_ones(sized.shape))
    shift = b.get(bias) if bias is not None else b.constant(sized.new_zeros(sized.shape))
    return b.add("BatchNormalization", b.get(this), scale, shift, b.get(mean), b.get(var), epsilon=float(eps),
                 momentum=1 - float(momentum))  # fmt: skip


def _layer_norm(
    b: Builder, this: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any
) -> Any:
    scale = b.get(weight) if weight is not None else b.constant(example(this).new_ones(list(shape)))
    return b.add("LayerNormalization", b.get(this), scale, b.get(bias), axis=-len(shape), epsilon=float(eps))


def _group_norm(b: Builder, this: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5,
                *_: Any) -> Any:  # fmt: skip
    sized, channels = example(this), example(this).shape[1]
    flat = b.add("Reshape", b.get(this), b.constant([0, groups, -1]))
    ones, zeros = b.constant(sized.new_ones(groups)), b.constant(sized.new_zeros(groups))
    normal = b.add("InstanceNormalization", flat, ones, zeros, epsilon=float(eps))
    result = b.add("Reshape", normal, b.constant(list(sized.shape)))
    side = b.constant([channels, *[1] * (sized.dim() - 2)])
    if weight is not None:
        result = b.add("Mul", result, b.add("Reshape", b.get(weight), side))
    return result if bias is None else b.add("Add", result, b.add("Reshape", b.get(bias), side))


def _softmax(op_type: str) -> Translation:
    return lambda b, this, dim, *_, **__: b.add(op_type, b.get(this), axis=dim)


def _reshape(b: Builder, this: Any, *_: Any, **__: Any) -> Any:
    sizes = [*map(int, b.current.meta["val"].shape)]  # type: ignore[union-attr]
    wanted = b.current.args[1] if len(b.current.args) > 1 else None  # type: ignore[union-attr]
    if isinstance(wanted, (list, tuple)) and b.current.target._opname in ("view", "reshape"):  # type: ignore[union-attr]
        sizes = [int(size) for size in wanted]
    return b.add("Reshape", b.get(this), b.constant(sizes), allowzero=1)


def _flatten(b: Builder, this: Any, start: int = 0, end: int = -1) -> Any:
    rank = example(this).dim()
    if start == 1 and end % rank == rank - 1:
        return b.add("Flatten", b.get(this), axis=1)
    return _reshape(b, this)


def _permuted(b: Builder, this: Any, order: list[int]) -> Any:
    return b.add("Transpose", b.get(this), perm=[d % len(order) for d in order])


def _transpose(b: Builder, this: Any, first: int, second: int) -> Any:
    order = list(range(example(this).dim()))
    order[first], order[second] = order[second], order[first]
    return _permuted(b, this, order)


def _t(b: Builder, this: Any) -> Any:
    return b.get(this) if example(this).dim() < 2 else _permuted(b, this, [1, 0])


def _cat(b: Builder, tensors: Any, dim: int = 0) -> Any:
    return b.add("Concat", *map(b.get, tensors), axis=dim)


def _stack(b: Builder, tensors: Any, dim: int = 0) -> Any:
    lifted = [b.add("Unsqueeze", b.get(t), b.constant([dim])) for t in tensors]
    return b.add("Concat", *lifted, axis=dim)


def _slice(b: Builder, this: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    first, last = start or 0, (1 << 63) - 1 if end is None else end
    if first == 0 and last == (1 << 63) - 1 and step == 1:
        return b.get(this)
    return b.add("Slice", b.get(this), *(b.constant([n]) for n in (first, last, dim, step)))


def _select(b: Builder, this: Any, dim: int, index: int) -> Any:
    return b.add("Gather", b.get(this), b.constant(index), axis=dim)


def _unsqueeze(b: Builder, this: Any, dim: int) -> Any:
    return b.add("Unsqueeze", b.get(this), b.constant([dim]))


def _squeeze(b: Builder, this: Any, dim: Any = None) -> Any:
    shape = example(this).shape
    dims = range(len(shape)) if dim is None else [dim] if isinstance(dim, int) else dim
    places = [d for d in dims if shape[d] == 1]
    return b.add("Squeeze", b.get(this), b.constant(places)) if places else b.get(this)


def _reduced(op_type: str) -> Translation:
    def translate(b: Builder, this: Any, dim: Any = None, keepdim: bool = False, **_: Any) -> Any:
        dims = None if dim is None or dim == [] else b.constant([dim] if isinstance(dim, int) else list(dim))
        return b.add(op_type, b.get(this), dims, keepdims=int(keepdim))

    return translate


def _extreme(op_type: str, place: str) -> Translation:
    """``max`` and ``min``: of all elements, or along a dimension with the places."""

    def translate(b: Builder, this: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is None:
            return b.add(op_type, b.get(this), keepdims=0)
        return [
            b.add(op_type, b.get(this), b.constant([dim]), keepdims=int(keepdim)),
            b.add(place, b.get(this), axis=dim, keepdims=int(keepdim)),
        ]

    return translate


def _place(op_type: str) -> Translation:
    def translate(b: Builder, this: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is None:
            return b.add(op_type, b.add("Reshape", b.get(this), b.constant([-1])), axis=0, keepdims=0)
        return b.add(op_type, b.get(this), axis=dim, keepdims=int(keepdim))

    return translate


def _clamp(b: Builder, this: Any, low: Any = None, high: Any = None) -> Any:
    return b.add("Clip", b.get(this), b.like(low, this), b.like(high, this))


def _where(b: Builder, condition: Any, this: Any, other: Any) -> Any:
    return b.add("Where", b.get(condition), b.get(this), b.get(other))


def _embedding(b: Builder, weight: Any, indices: Any, *_: Any, **__: Any) -> Any:
    return b.add("Gather", b.get(weight), b.get(indices), axis=0)


def _gather(b: Builder, this: Any, dim: int, index: Any, **_: Any) -> Any:
    return b.add("GatherElements", b.get(this), b.get(index), axis=dim)


def _expand(b: Builder, this: Any, *_: Any, **__: Any) -> Any:
    return b.add("Expand", b.get(this), b.constant([*map(int, b.current.meta["val"].shape)]))  # type: ignore[union-attr]


def _gelu(b: Builder, this: Any, approximate: str = "none") -> Any:
    return b.add("Gelu", b.get(this), approximate=approximate)


def _silu(b: Builder, this: Any) -> Any:
    return b.add("Mul", b.get(this), b.add("Sigmoid", b.get(this)))


def _rsqrt(b: Builder, this: Any) -> Any:
    return b.add("Reciprocal", b.add("Sqrt", b.get(this)))


def _cast(b: Builder, this: Any, *args: Any, **kwargs: Any) -> Any:
    made = b.current.meta["val"].dtype  # type: ignore[union-attr]
    if made == example(this).dtype:
        return b.get(this)
    return b.add("Cast", b.get(this), to=DATA_TYPES[str(made).removeprefix("torch.")])


def _leaky_relu(b: Builder, this: Any, slope: float = 0.01) -> Any:
    return b.add("LeakyRelu", b.get(this), alpha=float(slope))


def _elu(b: Builder, this: Any, alpha: float = 1.0, *_: Any) -> Any:
    return b.add("Elu", b.get(this), alpha=float(alpha))


def _softplus(b: Builder, this: Any, beta: float = 1, threshold: float = 20) -> Any:
    if beta != 1:
        raise NotImplementedError("softplus with another beta than 1 is not in Stridescope's ONNX export yet")
    return b.add("Softplus", b.get(this))


def _hardtanh(b: Builder, this: Any, low: float = -1.0, high: float = 1.0) -> Any:
    return _clamp(b, this, low, high)


def _pad(b: Builder, this: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    rank = example(this).dim()
    pairs = [[0, 0]] * (rank - len(pad) // 2) + [list(pad[i : i + 2]) for i in range(len(pad) - 2, -1, -2)]
    pads = [before for before, _ in pairs] + [after for _, after in pairs]
    kind = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    filled = b.like(0 if value is None else value, this) if kind == "constant" else None
    return b.add("Pad", b.get(this), b.constant(pads), filled, mode=kind)


def _split(b: Builder, this: Any, *args: Any, **kwargs: Any) -> Any:
    parts = [user.meta["val"] for user in b.current.users if "val" in user.meta]  # type: ignore[union-attr]
    dim = kwargs.get("dim", args[1] if len(args) > 1 else 0)
    sizes = [int(part.shape[dim]) for part in parts]
    return b.add("Split", b.get(this), b.constant(sizes), outputs=max(len(sizes), 2), axis=dim)


def _log2(b: Builder, this: Any) -> Any:
    return b.add("Div", b.add("Log", b.get(this)), b.like(math.log(2), this))


OPS: dict[str, Translation] = {
    **{name: _one(op_type) for name, op_type in SAME.items()},
    **{name: _pair(op_type) for name, op_type in PAIRS.items()},
    **dict.fromkeys(NOTHING, _itself),
    "dropout": _dropout, "add": _scaled("Add"), "sub": _scaled("Sub"), "rsub": _rsub, "ne": _ne, "linear": _linear,
    "addmm": _addmm, "matmul": _matmul, "mm": _matmul, "bmm": _matmul, "conv1d": _conv(1), "conv2d": _conv(2),
    "conv3d": _conv(3), "max_pool1d": _max_pool(1), "max_pool2d": _max_pool(2), "max_pool3d": _max_pool(3),
    "avg_pool1d": _avg_pool(1), "avg_pool2d": _avg_pool(2), "avg_pool3d": _avg_pool(3),
    "adaptive_avg_pool1d": _adaptive_avg_pool, "adaptive_avg_pool2d": _adaptive_avg_pool,
    "adaptive_avg_pool3d": _adaptive_avg_pool, "batch_norm": _batch_norm, "layer_norm": _layer_norm,
    "group_norm": _group_norm, "softmax": _softmax("Softmax"), "log_softmax": _softmax("LogSoftmax"),
    "view": _reshape, "reshape": _reshape, "unflatten": _reshape, "flatten": _flatten, "permute": _permuted,
    "transpose": _transpose, "t": _t, "numpy_T": _t, "cat": _cat, "concat": _cat, "stack": _stack, "slice": _slice,
    "select": _select, "unsqueeze": _unsqueeze, "squeeze": _squeeze, "mean": _reduced("ReduceMean"),
    "sum": _reduced("ReduceSum"), "prod": _reduced("ReduceProd"), "amax": _reduced("ReduceMax"),
    "amin": _reduced("ReduceMin"), "logsumexp": _reduced("ReduceLogSumExp"), "max": _extreme("ReduceMax", "ArgMax"),
    "min": _extreme("ReduceMin", "ArgMin"), "argmax": _place("ArgMax"), "argmin": _place("ArgMin"), "clamp": _clamp,
    "clamp_min": lambda b, this, low: _clamp(b, this, low), "where": _where, "embedding": _embedding,
    "gather": _gather, "expand": _expand, "expand_as": _expand, "gelu": _gelu, "silu": _silu, "rsqrt": _rsqrt,
    "to": _cast, "_to_copy": _cast,
    **dict.fromkeys(("float", "double", "half", "bfloat16", "int", "long", "bool", "type_as"), _cast),
    "leaky_relu": _leaky_relu, "elu": _elu, "softplus": _softplus,
    "hardtanh": _hardtanh, "relu6": lambda b, this: _clamp(b, this, 0, 6), "pad": _pad, "split": _split,
    "chunk": _split, "log2": _log2,
}  # fmt: skip
