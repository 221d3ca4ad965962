"""Special functions, through scipy.special: gamma, zeta, Bessel and error functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import elementwise, not_implemented
from stridescope.engine.dispatch.op import Op, define, node_name
from stridescope.engine.dispatch.out_rule import Out
from stridescope.engine.dispatch.run import into
from stridescope.engine.dtype import BOOL, FLOAT, INTEGER, default_float, scalar_name
from stridescope.engine.kernels import bessel
from stridescope.engine.ops.arithmetic import add_scalar, mul_scalar
from stridescope.engine.ops.choice import where
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.tensor import Tensor, fresh


def scipy_function(name: str) -> Callable[..., Any]:
    """A function of scipy.special, imported when it is first called: the import costs a tenth of a second."""

    def call(*arrays: Any) -> Any:
        from scipy import special

        return getattr(special, name)(*arrays)

    return call


def _one(
    name: str,
    function: Callable[..., Any],
    doc: str,
    grad: Callable[..., Any] | None = None,
    *,
    label: str = "",
    argument: str = "self",
    public: bool = True,
    halves: bool = True,
) -> Op:
    """Declare a function of one tensor; ``public`` ones stand in torch, the others in torch.special."""
    return define(
        f"{name}(Tensor {argument}) -> Tensor",
        doc=doc,
        run=elementwise(function, label or f"{name.removeprefix('special_')}_cpu", "bif", to_float=True, halves=halves),
        grads={argument: grad} if grad else None,
        method=public,
        namespace="torch" if public else "torch.special",
        inplace=public,
        samples=[((3, 4),)] if grad else [],
    )


# ---- gamma -------------------------------------------------------------------------------------------------------


def _lgamma(a: Any) -> Any:
    from scipy import special

    return np.where(np.isinf(a), a.dtype.type(np.inf), special.gammaln(a))


_one("lgamma", _lgamma, "The logarithm of the size of the gamma function.",
     lambda grad, self: grad * self.digamma(), label="lgamma_vml_cpu")  # fmt: skip


def _digamma(a: Any) -> Any:
    from scipy import special

    result = special.digamma(a)
    poles = (a < 0) & (a == np.floor(a))
    zero = np.where(a == 0, np.copysign(a.dtype.type(np.inf), -a), result)
    return np.where(poles, a.dtype.type(np.nan), zero)


_one("digamma", _digamma, "The derivative of lgamma.", lambda grad, self: grad * polygamma.call(1, self),
     label="digamma")  # fmt: skip


def _polygamma_run(n: int, self: Tensor) -> Tensor:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return _polygamma_kernel[min(n, 2)](self, n)


def _polygamma(a: Any, n: int) -> Any:
    from scipy import special

    if n == 0:
        return _digamma(a)
    if n == 1:  # left of a half by reflection, in the input's own precision
        left, pi = a < 0.5, a.dtype.type(math.pi)
        right = special.zeta(2.0, np.where(left, 1 - a, a).astype(np.float64)).astype(a.dtype)
        return np.where(left, (pi / np.sin(pi * a)) ** 2 - right, right).astype(a.dtype)
    sign = 1.0 if n % 2 else -1.0
    wide = a.astype(np.float64)
    negative = (wide < 0) & (np.floor(wide) != wide)  # scipy would add all terms up to zero
    found = np.where(negative, _shifted(n + 1.0, wide), special.zeta(n + 1.0, np.where(negative, 1.0, wide)))
    result = sign * math.factorial(n) * found
    return np.where(np.isposinf(a), np.nan, result).astype(a.dtype)


_polygamma_kernel = {
    n: elementwise(_polygamma, name, "bif", to_float=True, count=1)
    for n, name in enumerate(("digamma", "trigamma", "polygamma"))
}

polygamma: Op = define(
    "polygamma(int n, Tensor self) -> Tensor",
    doc="The n-th derivative of digamma.",
    run=_polygamma_run,
    out=Out(memory_first=True),
    grads={"self": lambda grad, n, self: grad * polygamma.call(n + 1, self)},
    method=False,
)
define(
    "polygamma.method(Tensor self, int n) -> Tensor",
    doc="The n-th derivative of digamma.",
    composite=lambda self, n: polygamma.call(n, self),
    function=False,
)
define(
    "polygamma_(Tensor(a!) self, int n) -> Tensor(a!)",
    doc="The n-th derivative of digamma, written in place.",
    run=into(lambda self, n: _polygamma_run(n, self)),
    node="PolygammaBackward1",
    grads={"self": lambda grad, self, n: grad * polygamma.call(n + 1, self)},
    function=False,
)


def _mvlgamma_run(self: Tensor, p: int) -> Tensor:
    if self.dtype.category == BOOL:
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    if self.dtype.is_complex:
        raise not_implemented("arange_cpu", self.dtype)
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    kind = self.dtype if self.dtype.category == FLOAT else default_float()
    steps = fresh((np.arange(1 - p, 1) * 0.5).astype(kind.np), kind, self.device)
    terms = steps + self.detach().unsqueeze(-1)
    return terms.lgamma().sum(-1) + p * (p - 1) * math.log(math.pi) / 4  # type: ignore[no-any-return]


def _mvlgamma_grad(grad: Tensor, self: Tensor, p: int) -> Tensor:
    steps = self.new_full((p,), 0.5).cumsum(0) - 0.5
    return grad * (self.unsqueeze(-1) - steps).digamma().sum(-1)  # type: ignore[no-any-return]


define(
    "mvlgamma(Tensor self, int p) -> Tensor",
    doc="The logarithm of the multivariate gamma function.",
    run=_mvlgamma_run,
    grads={"self": lambda grad, self, p: _mvlgamma_grad(grad, self, p)},
    samples=[((3, 4), 2)],
)


def _mvlgamma_in_place(self: Tensor, p: int) -> Tensor:
    if self.dtype.category == INTEGER:
        raise RuntimeError(
            f"mvlgamma: result type {scalar_name(self.dtype)} can't be cast to the desired output type "
            f"{scalar_name(default_float())}"
        )
    return into(_mvlgamma_run)(self, p)  # type: ignore[no-any-return]


define(
    "mvlgamma_(Tensor(a!) self, int p) -> Tensor(a!)",
    doc="The logarithm of the multivariate gamma function. Written in place.",
    run=_mvlgamma_in_place,
    node="MvlgammaBackward0",
    grads={"self": lambda grad, self, p: _mvlgamma_grad(grad, self, p)},
    function=False,
)


def _incomplete(function: str, upper: bool) -> Callable[..., Any]:
    """An incomplete gamma function with its limits at infinity."""

    def compute(a: Any, x: Any) -> Any:
        inner = scipy_function(function)(a, x)
        none, all_ = (1, 0) if upper else (0, 1)
        nan = np.asarray(inner).dtype.type(np.nan)
        cases = [
            np.less(x, 0) | np.less(a, 0), np.equal(a, 0) & np.greater(x, 0), np.equal(a, 0), np.equal(x, 0),
            np.isinf(a) & np.isinf(x), np.isinf(a), np.isinf(x),
        ]  # fmt: skip
        return np.select(cases, [nan, all_, nan, none, nan, none, all_], inner)

    return compute


def _no_derivative(name: str) -> Any:
    raise NotImplementedError(f"the derivative for '{name}' is not implemented.")


for _name, _function, _sign in (("igamma", "gammainc", 1.0), ("igammac", "gammaincc", -1.0)):
    define(
        f"{_name}(Tensor self, Tensor other) -> Tensor",
        doc="The regularised incomplete gamma function" + (", its upper part." if _sign < 0 else "."),
        run=elementwise(_incomplete(_function, _sign < 0), f"{_name}_cpu", "f"),
        grads={
            "self": (lambda grad: _no_derivative("igamma: input"))
            if _sign > 0
            else (lambda grad: _no_derivative("igammac: input")),
            "other": (
                (lambda grad, self, other: grad * ((self - 1) * other.log() - other - self.lgamma()).exp())
                if _sign > 0
                else (lambda grad, self, other: -grad * ((self - 1) * other.log() - other - self.lgamma()).exp())
            ),
        },
        inplace=True,
    )

# ---- Bessel ------------------------------------------------------------------------------------------------------

_one("i0", scipy_function("i0"), "The modified Bessel function of order 0.",
     lambda grad, self: grad * op_call("special_i1")(self), label="i0_vml_cpu")  # fmt: skip
_one("special_i0e", scipy_function("i0e"), "i0, scaled by e to the minus size.",
     lambda grad, self, result: grad * (op_call("special_i1e")(self) - self.sgn() * result), public=False)  # fmt: skip
_one("special_i1", scipy_function("i1"), "The modified Bessel function of order 1.",
     lambda grad, self, result: grad * _i1_slope(self, self.i0(), result), public=False)  # fmt: skip
_one("special_i1e", scipy_function("i1e"), "i1, scaled by e to the minus size.",
     lambda grad, self, result: grad * _i1e_slope(self, op_call("special_i0e")(self), result),
     public=False)  # fmt: skip


def _near_zero(self: Tensor, label: str) -> Tensor:
    """Where the slope is that at zero: NaN counts as near."""
    if self.dtype.itemsize == 2:
        raise not_implemented(label, self.dtype)
    return (self.abs() > float(np.finfo(self.dtype.np).eps)).logical_not()  # type: ignore[no-any-return]


def _i1_slope(self: Tensor, i0: Tensor, i1: Tensor) -> Tensor:
    tiny = _near_zero(self, "i1_backward")
    safe = self.masked_fill(tiny, 1.0)
    return where.call(tiny, 0.5, i0 - i1 * safe.reciprocal())  # type: ignore[no-any-return]


def _i1e_slope(self: Tensor, i0e: Tensor, i1e: Tensor) -> Tensor:
    tiny = _near_zero(self, "i1e_backward")
    safe = self.masked_fill(tiny, 1.0)
    return where.call(tiny, 0.5, i0e - i1e * (safe.sgn() + safe.reciprocal()))  # type: ignore[no-any-return]


def _spherical_j0(a: Any) -> Any:
    return np.where(np.isinf(a), a.dtype.type(0), np.where(a == 0, a.dtype.type(1), np.sin(a) / np.where(a == 0, 1, a)))


def _airy(a: Any) -> Any:
    """Below zero with the phase of the oscillation in the argument's own precision, as in PyTorch's kernel."""
    from scipy import special

    found, swings = np.where(a > 103.892, a.dtype.type(0), special.airy(a)[0]), a < -2.09
    if not swings.any():
        return found
    return np.where(swings, _swinging_airy(np.where(swings, a, a.dtype.type(-3))), found)


def _swinging_airy(x: Any) -> Any:
    """Ai of negative numbers by its phase; Ai and Bi give the factors of sine and cosine, far out their expansion."""
    from scipy import special

    number, wide = x.dtype.type, -x.astype(np.float64)
    exact = 2 / 3 * wide * np.sqrt(wide)
    airy, _, other, _ = special.airy(-np.minimum(wide, 1e4))
    sine, cosine = np.sin(exact + math.pi / 4), np.cos(exact + math.pi / 4)
    far, limit = wide >= 1e4, 1 / math.sqrt(math.pi) / wide**0.25
    along = np.where(far, limit, airy * sine + other * cosine).astype(number)
    across = np.where(far, limit * 5 / 72 / exact, other * sine - airy * cosine).astype(number)
    phase = number(-2) * x * np.sqrt(-x) / number(3) + number(math.pi / 4)
    return np.sin(phase) * along - np.cos(phase) * across


def _log_ndtr(a: Any) -> Any:
    """As PyTorch computes it: the square is taken out of what underflows."""
    from scipy import special

    scaled = a * a.dtype.type(math.sqrt(0.5))
    low = np.minimum(scaled, a.dtype.type(0))
    tail = np.log(special.erfcx(-low) / 2) - low * low
    return np.where(a < -1, tail, np.log1p(-special.erfc(scaled) / 2))


for _name, _bessel, _argument in (
    ("airy_ai", _airy, "x"),
    ("bessel_j0", bessel.j0, "self"),
    ("bessel_j1", bessel.j1, "self"),
    ("bessel_y0", bessel.y0, "self"),
    ("bessel_y1", bessel.y1, "self"),
    ("modified_bessel_i0", scipy_function("i0"), "self"),
    ("modified_bessel_i1", scipy_function("i1"), "self"),
    ("modified_bessel_k0", scipy_function("k0"), "self"),
    ("modified_bessel_k1", scipy_function("k1"), "self"),
    ("scaled_modified_bessel_k0", scipy_function("k0e"), "x"),
    ("scaled_modified_bessel_k1", scipy_function("k1e"), "x"),
    ("spherical_bessel_j0", _spherical_j0, "x"),
):
    _one(
        f"special_{_name}",
        _bessel,
        f"The function {_name.replace('_', ' ')}; it has no derivative here.",
        public=False,
        argument=_argument,
        halves=False,
    )

# ---- error functions and friends ---------------------------------------------------------------------------------


def _entr(a: Any) -> Any:
    kind = a.dtype.type
    inside = -a * np.log(np.where(a > 0, a, kind(1)))
    return np.where(np.isnan(a), a, np.where(a > 0, inside, np.where(a == 0, kind(0), kind(-np.inf))))


_one("special_entr", _entr, "Minus x times its logarithm.", lambda grad, self: grad * (-(1 + self.log())), public=False)
_one("special_erfcx", scipy_function("erfcx"), "erfc, scaled by e to the square.",
     lambda grad, self, result: (2.0 * self * result - 2.0 / math.sqrt(math.pi)) * grad, public=False,
     halves=False)  # fmt: skip
_one("special_ndtri", scipy_function("ndtri"), "The quantile of the normal distribution.",
     lambda grad, result: grad * math.sqrt(2 * math.pi) * (result.square() / 2).exp(), public=False,
     halves=False)  # fmt: skip
_one("special_log_ndtr", _log_ndtr, "The logarithm of the normal distribution's area.",
     lambda grad, self, result: grad / math.sqrt(2 * math.pi) * (result + self.pow(2) / 2).neg().exp(),
     public=False, halves=False)  # fmt: skip


def _ndtr(self: Tensor) -> Tensor:
    scaled = mul_scalar.call(self, math.sqrt(0.5)) if self.dtype.category >= FLOAT else self * math.sqrt(0.5)
    return mul_scalar.call(add_scalar.call(scaled.erf(), 1, 1), 0.5)  # type: ignore[no-any-return]


define(
    "special_ndtr(Tensor self) -> Tensor",
    doc="The area of the normal distribution up to each element.",
    composite=_ndtr,
    method=False,
    namespace="torch.special",
)


def _xlog1py(a: Any, b: Any) -> Any:
    product = np.multiply(a, np.log1p(b))
    return np.where(np.isnan(b), b, np.where(np.equal(a, 0), np.asarray(product).dtype.type(0), product))


def _zeta(a: Any, b: Any) -> Any:
    from scipy import special

    kind = np.asarray(a).dtype
    result = special.zeta(np.asarray(a, np.float64), np.asarray(b, np.float64))
    # PyTorch: infinite at a == 1 and at the poles b = 0, -1, …; undefined below 1 and for other negative b.
    result = np.where(np.isposinf(b), np.nan, np.where(np.isinf(a), _first_terms(b), result))
    whole = np.floor(b) == b
    bad = np.where(np.less_equal(b, 0), np.where(whole, np.inf, np.nan), result)
    bad = np.where(np.less_equal(b, 0) & ~whole & (np.floor(a) == a), _shifted(np.where(np.isfinite(a), a, 2), b), bad)
    bad = np.where(np.isposinf(a) & ~(np.less_equal(b, 0) & whole), _first_terms(b), bad)
    return np.where(np.equal(a, 1), np.inf, np.where(np.less(a, 1), np.nan, bad)).astype(kind)


def _first_terms(b: Any) -> Any:
    """The Hurwitz zeta function of infinity: a term of 1 or of infinity settles it, terms of 0 alone end in NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.arange(10.0).reshape(-1, *(1,) * np.ndim(b))
        total = np.power(np.asarray(b, np.float64) + steps, -np.inf).sum(0)
    return np.where(total == 0, np.nan, total)


def _shifted(a: Any, b: Any) -> Any:
    """The Hurwitz zeta function of a whole number and of a negative b that is not whole; 0 at minus infinity.

    Its terms below zero are, but for their sign, those that the function has at b's distance from the next whole
    number, up to ``-b``.
    """
    from scipy import special

    a, b = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
    low = np.where(np.isfinite(b) & (b < 0), b, -0.5)
    steps = np.floor(-low) + 1
    nearest = -(low + steps - 1)
    below = special.zeta(a, nearest) - special.zeta(a, nearest + steps)
    total = np.where(a % 2 == 0, below, -below) + special.zeta(a, low + steps)
    return np.where(np.isfinite(b), total, 0.0)


def _pairs(
    name: str, function: Callable[..., Any], doc: str, grads: dict[str, Callable[..., Any]], label: str, halves: bool
) -> None:
    """A function of two operands of which one may be a number; some have no kernel for half precision."""
    run = elementwise(function, label, "bif", to_float=True, halves=halves)
    camel = node_name(name).removesuffix("Backward0")
    forms = (
        ("", "Tensor self, Tensor other", ("self", "other")),
        (".self_scalar", "Scalar self, Tensor other", ("other",)),
        (".other_scalar", "Tensor self, Scalar other", ("self",)),
    )
    for number, (overload, arguments, differentiable) in enumerate(forms):
        define(
            f"{name}{overload}({arguments}) -> Tensor",
            doc=doc,
            run=run,
            node=f"{camel}Backward{number}",
            grads={key: grads[key] for key in differentiable},
            method=False,
            namespace="torch.special",
        )


def _xlog1py_of(a: Any, b: Any) -> Tensor:
    return op_call("special_xlog1py" + ("" if isinstance(b, Tensor) else ".other_scalar"))(a, b)  # type: ignore[no-any-return]


_pairs("special_xlog1py", _xlog1py, "self times the logarithm of 1 plus other, 0 where self is 0.", {
    "self": lambda grad, self, other: _xlog1py_of(grad, other).masked_fill(
        (self == 0.0) & (other <= -1.0) if isinstance(other, Tensor) or other <= -1.0 else self != self, 0.0),
    "other": lambda grad, self, other: grad * self / (other + 1),
}, "xlog1py_cpu", True)  # fmt: skip
_pairs("special_zeta", _zeta, "The Hurwitz zeta function.", {
    "self": lambda grad: _no_derivative("zeta"),
    "other": lambda grad, self, other: grad * -self * op_call(
        "special_zeta" if isinstance(self, Tensor) else "special_zeta.self_scalar")(self + 1.0, other),
}, "zeta_cpu", False)  # fmt: skip


# ---- frexp -------------------------------------------------------------------------------------------------------


def _frexp(self: Tensor) -> tuple[Tensor, Tensor]:
    from stridescope.engine.dispatch.result_strides import output_strides
    from stridescope.engine.dispatch.run import cast, laid_out, resolved
    from stridescope.engine.dtype import int32
    from stridescope.engine.tensor import fresh

    if self.dtype.category != FLOAT:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    array = resolved(self)
    mantissa, exponent = np.frexp(array.astype(np.float32) if array.dtype.itemsize == 2 else array)
    strides = output_strides(array.shape, [array])
    return (
        fresh(laid_out(cast(np.asarray(mantissa), self.dtype), strides), self.dtype, self.device),
        fresh(laid_out(cast(np.asarray(exponent), int32), strides), int32, self.device),
    )


define(
    "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",
    doc="Mantissas between a half and one, and powers of two.",
    run=_frexp,
    node="FrexpBackward0",
    grads={"self": lambda grad, exponent: grad / exponent.exp2()},
)

# ---- second names in torch.special -------------------------------------------------------------------------------

# torch.special name -> (schema arguments, the op it is)
_SAME: tuple[tuple[str, str, str], ...] = (
    ("expm1", "Tensor self", "expm1"), ("exp2", "Tensor self", "exp2"), ("psi", "Tensor self", "digamma"),
    ("digamma", "Tensor self", "digamma"), ("gammaln", "Tensor self", "lgamma"), ("erf", "Tensor self", "erf"),
    ("erfc", "Tensor self", "erfc"), ("erfinv", "Tensor self", "erfinv"), ("i0", "Tensor self", "i0"),
    ("expit", "Tensor self", "sigmoid"), ("sinc", "Tensor self", "sinc"), ("log1p", "Tensor self", "log1p"),
    ("logit", "Tensor self, float? eps=None", "logit"), ("polygamma", "int n, Tensor self", "polygamma"),
    ("logsumexp", "Tensor self, int[1] dim, bool keepdim=False", "logsumexp"),
    ("gammainc", "Tensor self, Tensor other", "igamma"), ("gammaincc", "Tensor self, Tensor other", "igammac"),
    ("multigammaln", "Tensor self, int p", "mvlgamma"), ("xlogy", "Tensor self, Tensor other", "xlogy.Tensor"),
    ("xlogy.self_scalar", "Scalar self, Tensor other", "xlogy.Scalar_Self"),
    ("xlogy.other_scalar", "Tensor self, Scalar other", "xlogy.Scalar_Other"),
)  # fmt: skip

for _name, _arguments, _target in _SAME:
    define(
        f"special_{_name}({_arguments}) -> Tensor",
        doc=f"Another name of torch.{_target.partition('.')[0]}.",
        composite=lambda *args, target=_target: op_call(target)(*args),
        method=False,
        namespace="torch.special",
        same_as=_target,
    )


def _special_round(self: Tensor, decimals: int = 0) -> Tensor:
    return op_call("round.decimals")(self, decimals)  # type: ignore[no-any-return]


define(
    "special_round(Tensor self, *, int decimals=0) -> Tensor",
    doc="Another name of torch.round.",
    composite=_special_round,
    method=False,
    namespace="torch.special",
)
