"""Random tensors from tensors of parameters: bernoulli, normal, multinomial, poisson, dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.autograd.leaf import require_grad
from stridescope.engine.device import CPU
from stridescope.engine.devices.cuda_generator import CudaGenerator
from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.out_rule import FREE, Out
from stridescope.engine.dispatch.overlap import is_lazy, refuse_internal_overlap
from stridescope.engine.dispatch.run import laid_out, on_copy, resolved
from stridescope.engine.dtype import bool_, default_float, int64, scalar_name
from stridescope.engine.kernels import draws
from stridescope.engine.layout import broadcast_shapes, dense_strides_like
from stridescope.engine.ops import random_fill
from stridescope.engine.ops.creation import OPTIONS, checked, made, zeros_like
from stridescope.engine.ops.generator import source_for
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.ops.random_fill import fill, host_stream
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, fresh


def _zeros(grad: Tensor) -> Tensor:
    return zeros_like.call(grad)  # type: ignore[no-any-return]


def _blank(like: Tensor) -> Tensor:
    """Zeros in the layout of another tensor."""
    array = np.zeros(like._array.shape, like.dtype.np)
    strides = dense_strides_like(array.shape, like.strides)
    return fresh(laid_out(array, strides), like.dtype, like.device)


def _row_major(like: Tensor) -> Tensor:
    """Row-major zeros in the shape of another tensor."""
    return fresh(np.zeros(like._array.shape, like.dtype.np), like.dtype, like.device)


# ---- bernoulli -------------------------------------------------------------------------------------------------------


def _bernoulli_into(self: Tensor, p: Tensor, generator: Any) -> Tensor:
    if is_lazy(self):
        return on_copy(self, _bernoulli_into, p, generator)
    refuse_internal_overlap(self)
    if self.dtype.is_complex and self._array.size:
        raise not_implemented("bernoulli_tensor_cpu_self_", self.dtype)
    if not p.dtype.is_floating_point and self._array.size:
        raise not_implemented("bernoulli_tensor_cpu_p_", p.dtype)
    values = np.broadcast_to(resolved(p), self._array.shape)
    if not ((values >= 0) & (values <= 1)).all():
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  If "
            "so, please report an enhancement request to PyTorch.)"
        )
    ordered = _in_memory_order(self, values)
    single = p.dtype.name != "float64"
    return fill(
        self,
        generator,
        lambda source, n: (
            source.bernoulli_each(ordered)
            if isinstance(source, CudaGenerator)
            else draws.bernoulli(source, n, ordered, single)
        ),
    )


def _in_memory_order(like: Tensor, values: Array) -> Array:
    """Values in the order in which ``like``'s elements lie in memory."""
    from stridescope.engine.layout import iterator_order

    order = tuple(reversed(iterator_order([values.shape], [like.strides]))) if values.ndim else ()
    return values.transpose(order).reshape(-1)


define(
    "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
    doc="Ones with the probabilities that the tensor gives, else zeros.",
    run=lambda self, generator: _bernoulli_into(_row_major(self), self, generator),
    grads={"self": _zeros},
)
define(
    "bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
    doc="Ones with probability p, else zeros.",
    run=lambda self, p, generator: random_fill.bernoulli(_row_major(self), p, generator),
)
define(
    "bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)",
    doc="Ones with the probabilities of a tensor, else zeros.",
    run=_bernoulli_into,
    grads={"self": _zeros, "p": lambda p: p.new_zeros(p._array.shape)},
    node="BernoulliBackward1",
    function=False,
)


def _bernoulli_number(self: Tensor, p: float, generator: Any) -> Tensor:
    if is_lazy(self):
        return on_copy(self, _bernoulli_number, p, generator)
    if 0 <= p <= 1:  # what is no probability is refused first
        refuse_internal_overlap(self)
    return random_fill.bernoulli(self, p, generator)


bernoulli_ = define(
    "bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)",
    doc="Ones with probability p, else zeros.",
    run=_bernoulli_number,
    grads={"self": _zeros},
    node="BernoulliBackward2",
    function=False,
)


# ---- normal ----------------------------------------------------------------------------------------------------------


def _normal_of(mean: Any, std: Any, generator: Any) -> Tensor:
    """Standard normal numbers, scaled by ``std`` and moved by ``mean``, one of which is a tensor."""
    for value in (std,):
        if isinstance(value, Tensor):
            if value._array.size and not (resolved(value) >= 0).all():
                raise RuntimeError("normal expects all elements of std >= 0.0")
        elif value < 0:
            raise RuntimeError(f"normal expects std >= 0.0, but found std {value:g}")
    given = [v for v in (mean, std) if isinstance(v, Tensor)]
    shape = broadcast_shapes(*(v._array.shape for v in given))
    kind = given[0].dtype
    scale = 1.0 if isinstance(std, Tensor) else std
    result = fresh(np.zeros(shape, kind.np), kind, given[0].device)
    random_fill.normal(result, 0.0, scale, generator)
    array = result._array
    if isinstance(std, Tensor):
        array = (array * resolved(std)).astype(kind.np)
    array = (array + (resolved(mean) if isinstance(mean, Tensor) else kind.np.type(mean))).astype(kind.np)
    return fresh(array, kind, given[0].device)


def _sized(size: Any, mean: float, std: float, generator: Any, dtype: Any, device: Any, grad: Any) -> Tensor:
    kind = dtype or default_float()
    tensor = made(np.zeros(checked(size), kind.np), kind, device or CPU, False)  # no default device, as in PyTorch
    random_fill.normal(tensor, mean, std, generator)
    if grad:
        require_grad(tensor)
    return tensor


define(
    "normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
    doc="Normal numbers with a mean and a deviation each.",
    run=_normal_of,
    out=Out(own_dtype=True, factory=True),
    grads={
        "mean": lambda grad, mean_sym_sizes: grad.new_zeros(mean_sym_sizes),
        "std": lambda grad, std_sym_sizes: grad.new_zeros(std_sym_sizes),
    },
    node="NormalBackward3",
    method=False,
)
define(
    "normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None) -> Tensor",
    doc="Normal numbers with a mean each.",
    run=_normal_of,
    out=Out(own_dtype=True, factory=True),
    grads={"mean": lambda grad, mean_sym_sizes: grad.new_zeros(mean_sym_sizes)},
    node="NormalBackward1",
    method=False,
)
define(
    "normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
    doc="Normal numbers with a deviation each.",
    run=_normal_of,
    out=Out(own_dtype=True, factory=True),
    grads={"std": lambda grad, std_sym_sizes: grad.new_zeros(std_sym_sizes)},
    node="NormalBackward2",
    method=False,
)
define(
    "normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, "
    f"{OPTIONS.removeprefix('*, ')}) -> Tensor",
    doc="Normal numbers.",
    run=lambda mean, std, size, generator, dtype, layout, device, pin, grad: _sized(
        size, mean, std, generator, dtype, device, grad
    ),
    out=Out(own_dtype=True, factory=True),
    method=False,
)


# ---- multinomial, poisson --------------------------------------------------------------------------------------------


def _check_multinomial(self: Tensor, count: int, replacement: bool) -> None:
    ndim = self._array.ndim
    if not 0 < ndim <= 2:
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not self.dtype.is_floating_point:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {scalar_name(self.dtype)}")
    if count <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and count > self._array.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    values = resolved(self)
    if not (np.isfinite(values) & (values >= 0)).all():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if values.size and (values.sum(-1) == 0).any():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


def _multinomial(self: Tensor, num_samples: int, replacement: bool, generator: Any) -> Tensor:
    _check_multinomial(self, num_samples, replacement)
    if replacement and num_samples > 1:
        return _with_replacement(self, num_samples, generator)
    # The largest of p / e with exponential e is each index with probability p.
    rivals = _blank(self)
    random_fill.exponential(rivals, 1.0, generator)
    with np.errstate(all="ignore"):
        scores = (resolved(self) / rivals._array).astype(self.dtype.np)
    chosen = np.argsort(-scores, -1, kind="stable")[..., :num_samples]
    return fresh(np.ascontiguousarray(chosen), int64, self.device)


def _with_replacement(self: Tensor, count: int, generator: Any) -> Tensor:
    rows = np.atleast_2d(resolved(self))
    if rows.dtype.itemsize == 2:
        rows = rows.astype(np.float32)
    shape = (count,) if self._array.ndim == 1 else (rows.shape[0], count)
    source = source_for(generator, self.device)
    if isinstance(source, CudaGenerator):
        return fresh(source.multinomial(rows, count).reshape(shape), int64, self.device)
    found = np.empty((rows.shape[0], count), np.int64)
    for number, row in enumerate(rows):
        steps = np.add.accumulate(row, dtype=row.dtype)
        steps = (steps / steps[-1]).astype(row.dtype)
        if steps.size:
            steps[-1] = 1
        found[number] = np.searchsorted(steps, source.doubles(count), side="left")
    return fresh(found.reshape(shape), int64, self.device)


define(
    "multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
    doc="Indices drawn with the given weights.",
    run=_multinomial,
    out=FREE,
)


def _poisson(self: Tensor, generator: Any) -> Tensor:
    if not self.dtype.is_floating_point:
        raise NotImplementedError(f"\"poisson_cpu\" not implemented for '{scalar_name(self.dtype)}'")
    if (resolved(self) < 0).any():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    result = fresh(np.zeros(self._array.shape, self.dtype.np), self.dtype, self.device)
    rates = resolved(self).reshape(-1).astype(np.float64)
    stream = host_stream(generator, self, "poisson")
    return fill(result, generator, lambda source, n: draws.poisson(stream, rates))


define(
    "poisson(Tensor self, Generator? generator=None) -> Tensor",
    doc="Poisson numbers for a tensor of rates.",
    run=_poisson,
    grads={"self": lambda self: self.new_zeros(self._array.shape)},
    method=False,
)


# ---- dropout ---------------------------------------------------------------------------------------------------------


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")


def dropped(input: Tensor, p: float, train: bool, *, feature: bool, alpha: bool, inplace: bool) -> Any:
    """All kinds of dropout: multiply by noise that is 0 with probability ``p``.

    ``feature`` drops whole channels; ``alpha`` keeps mean and variance of SELU activations.
    """
    _check_probability(p)
    if p == 0 or not train or not input._array.size:
        return input
    if p == 1:
        zero = input.new_zeros(())
        return input.mul_(zero) if inplace else input.mul(zero)
    if input.device.type == "cuda" and not feature and not alpha and not inplace:
        return native_dropout.call(input, p, train)[0]
    noise = _noise(input, p, feature)
    if not alpha:
        noise = noise.div_(1 - p)
        return input.mul_(noise) if inplace else input.mul(noise)
    scale = 1.7580993408473766  # SELU's alpha times its scale
    a = 1.0 / ((scale * scale * p + 1) * (1 - p)) ** 0.5
    shift = noise.add(-1).mul_(scale * a).add_(scale * a * p)
    noise = noise.mul_(a)
    return input.mul_(noise).add_(shift) if inplace else input.mul(noise).add_(shift)


def _native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    array = resolved(input)
    if train is False or not array.size:
        return fresh(array.copy(), input.dtype, input.device), fresh(np.ones(array.shape, bool), bool_, input.device)
    keep = 1.0 - p
    mask = _blank(input)
    mask = fresh(mask._array.astype(bool), bool_, input.device)
    source = source_for(None, input.device)
    if isinstance(source, CudaGenerator):
        random_fill.place(mask, source.dropout_mask(array.size, keep, array.itemsize))
        wide: Any = np.float64 if array.dtype == np.float64 else np.float32
        scaled = array.astype(wide) * mask._array * wide(1.0 / wide(keep))
    else:
        random_fill.bernoulli(mask, keep, None)
        scaled = array * mask._array * array.dtype.type(1.0 / keep if keep else 0.0)
    return fresh(laid_out(scaled.astype(array.dtype), input.strides), input.dtype, input.device), mask


native_dropout = define(
    "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
    doc="Elements become 0 with probability p, the rest is scaled up; and which were kept.",
    run=_native_dropout,
    grads={
        "input": lambda grad, result1, p, train: grad * result1 * (1.0 if not train else 0.0 if p == 1 else 1 / (1 - p))
    },
    differentiable_outputs=[0],
    method=False,
)


def _noise(input: Tensor, p: float, feature: bool) -> Any:
    if feature:
        shape = input._array.shape
        if len(shape) < 2:
            raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
        blank: Any = input.new_empty((*shape[:2], *(1,) * (len(shape) - 2)))
    else:
        blank = op_call("empty_like")(input)
    return bernoulli_.call(blank, 1 - p, None)


def _define_dropout(name: str, feature: bool, alpha: bool) -> None:
    kind = f"{'Whole channels' if feature else 'Elements'} become 0 with probability p"
    kept = "mean and variance are kept" if alpha else "the rest is scaled up"
    define(
        f"{name}(Tensor input, float p, bool train) -> Tensor",
        doc=f"{kind}; {kept}.",
        composite=lambda input, p, train: dropped(input, p, train, feature=feature, alpha=alpha, inplace=False),
        method=False,
    )
    define(
        f"{name}_(Tensor(a!) self, float p, bool train) -> Tensor(a!)",
        doc=f"{kind}; {kept}. In place.",
        composite=lambda self, p, train: dropped(self, p, train, feature=feature, alpha=alpha, inplace=True),
        method=False,
    )


for _name, _feature, _alpha in (
    ("dropout", False, False),
    ("feature_dropout", True, False),
    ("alpha_dropout", False, True),
    ("feature_alpha_dropout", True, True),
):
    _define_dropout(_name, _feature, _alpha)
