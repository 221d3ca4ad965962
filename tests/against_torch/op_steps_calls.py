"""The steps of the op programs that call whole families by name: fft, linalg, special, norms, pools, losses, out=.

Most arguments are right, some are not: a dtype that the op does not take, a dim or size that does not fit.
"""

from __future__ import annotations

from typing import Any

from op_programs import COMPLEX, DTYPES, FLOATS, INTEGERS, Inexact, OpProgram, made_as, step
from op_steps import called, loose, whole

# ---- fresh operands --------------------------------------------------------------------------------------------------


def floats(p: OpProgram, shape: Any) -> Any:
    """A new tensor of this shape, as a rule of float32 or float64, seldom of any dtype."""
    return made_as(p, shape, p.pick(DTYPES) if p.chance(0.12) else p.pick(["float32", "float64"]))


def laid(p: OpProgram, tensor: Any) -> Any:
    """The same values, now and then laid out in another order of dims."""
    if tensor.dim() < 2 or p.chance(0.7):
        return tensor
    order = p.random.sample(range(tensor.dim()), tensor.dim())
    p.words.append(f"laid out {order}")
    back = sorted(range(len(order)), key=order.__getitem__)
    return tensor.permute(order).contiguous().permute(back)


def size(p: OpProgram, right: int) -> int:
    """A size that fits, or seldom one that does not."""
    return right if p.chance(0.93) else int(p.pick([right + 1, 1, 0]))


class Single(tuple[Any, ...]):
    """A result of single precision in shares of its largest number; see ``shares``."""


class Half(tuple[Any, ...]):
    """The same of half precision."""


def shares(found: Any) -> Any:
    """A result with errors that are relative to the largest number in it, as sums of many products have them.

    The order of such a sum, and so its rounding, is the library's (oneDNN, MKL, pocketfft) and the CPU's. What can be
    compared is the layout, and each number as a share of the largest.
    """
    if not found.numel() or found.dtype.itemsize == (16 if found.is_complex() else 8) or not found.dtype.is_signed:
        return found
    wide = found.cdouble() if found.is_complex() else found.double()
    largest = wide.abs().nan_to_num(0, 0, 0).max().clamp(min=1)
    kind = Half if found.dtype.itemsize == 2 else Single
    return kind((str(found.dtype), found.shape, found.stride(), wide / largest))


def exponential(p: OpProgram, matrix: Any) -> Any:
    """``matrix_exp``; for halves PyTorch has no degrees of its own, and overflows."""
    halves = p.kind(matrix) in ("float16", "bfloat16")
    return Inexact(shares(p.torch.matrix_exp(matrix.float() if halves else matrix)))


# ---- fft -------------------------------------------------------------------------------------------------------------

FFT_1D = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
FFT_ND = ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"]


@step(2, "calls")
def transformed(p: OpProgram) -> Any:
    one, fft = laid(p, p.tensor()), p.torch.fft
    norms = p.options(norm=["forward", "backward", "ortho", None])
    if p.kind(one) in ("float16", "bfloat16"):  # a transform of halves is for GPUs
        one = one.float()
    one = one.nan_to_num(0, 1, -1)
    if p.chance(0.15):
        return getattr(fft, p.pick(["fftshift", "ifftshift"]))(one, **p.options(dim=[0, -1, (0,)]))
    if p.chance(0.1):
        return Inexact(getattr(fft, p.pick(["fftfreq", "rfftfreq"]))(p.pick([1, 4, 5]), **p.options(d=[0.5, 2.0])))
    if p.chance(0.5):
        found = getattr(fft, p.pick(FFT_1D))(one, **p.options(n=[1, 2, 5, 0]), **p.options(dim=[p.dim(one)]), **norms)
        return Inexact(shares(found))
    name = p.pick(FFT_ND)
    options = p.options(dim=[(p.dim(one),), (-2, -1), (0, 0)], s=[(2, 2), (3,), (-1, 2)])
    return Inexact(shares(getattr(fft, name)(one, **options, **norms)))


# ---- linear algebra --------------------------------------------------------------------------------------------------


def square(p: OpProgram) -> Any:
    """A matrix (or a batch) that is far from singular."""
    n = p.pick([1, 2, 3])
    shape = (*p.pick([(), (), (2,), (0,)]), n, n)
    one = floats(p, shape)
    if not (one.is_floating_point() or one.is_complex()):
        return one
    return laid(p, one.nan_to_num(0, 1, -1) / 4 + 6 * p.torch.eye(n, dtype=one.dtype))


@step(3, "calls")
def decomposed(p: OpProgram) -> Any:
    one, linalg = square(p), p.torch.linalg
    name = p.pick(["det", "slogdet", "inv", "solve", "matrix_power", "cholesky", "qr", "svdvals", "eigvalsh", "pinv",
                   "matrix_rank", "cond", "matrix_exp", "lu_factor", "solve_triangular", "multi_dot", "inv_ex",
                   "cholesky_ex", "lstsq", "vander", "matrix_norm", "vecdot", "cross", "tensorsolve"])  # fmt: skip
    if name in ("cholesky", "cholesky_ex", "eigvalsh"):
        one = (one @ one.mH) if one.dtype.is_floating_point or one.is_complex() else one
        return Inexact(getattr(linalg, name)(one, **({} if name == "eigvalsh" else p.options(upper=[True, False]))))
    if name == "matrix_power":
        return Inexact(linalg.matrix_power(one, p.pick([0, 1, 2, 3, -1])))
    if name in ("solve", "lstsq"):
        right = floats(p, (*one.shape[:-2], size(p, one.shape[-1]), 2)).nan_to_num(0, 1, -1)
        return Inexact(getattr(linalg, name)(one, right)[0] if name == "lstsq" else linalg.solve(one, right))
    if name == "solve_triangular":
        return Inexact(linalg.solve_triangular(one, one, upper=p.pick([True, False])))
    if name in ("multi_dot", "vecdot", "cross"):
        return Inexact(linalg.multi_dot([one, one]) if name == "multi_dot" else getattr(linalg, name)(one, one))
    if name == "qr":  # of the factors only the sizes of the numbers are fixed
        return Inexact([shares(part.abs()) for part in linalg.qr(one, **p.options(mode=["reduced", "complete"]))])
    if name == "vander":
        return Inexact(linalg.vander(one[..., 0], **p.options(N=[1, 2, 4])))
    if name == "tensorsolve":
        return Inexact(linalg.tensorsolve(one, one[..., 0]))
    if name == "matrix_exp":
        return exponential(p, one)
    found = getattr(linalg, name)(one)
    return Inexact(shares(found) if name == "pinv" else found)


@step(2, "calls")
def normed(p: OpProgram) -> Any:
    one, linalg = p.tensor(), p.torch.linalg
    keep = p.options(keepdim=[True, False])
    if p.chance(0.5):
        return Inexact(linalg.vector_norm(one, p.pick([0, 1, 2, 3, float("inf"), -1, 0.5]), p.dims(one), **keep))
    if p.chance(0.5):
        orders = ["fro", 1, -1, float("inf")]
        return Inexact(linalg.matrix_norm(one, p.pick(orders), p.pick([(-2, -1), (0, 1), (0, 0)]), **keep))
    return Inexact(linalg.norm(one, *p.pick([(), (1,), (2,), (float("inf"),)]), **p.options(dim=[p.dim(one)]), **keep))


@step(1, "calls")
def of_matrices(p: OpProgram) -> Any:
    one = p.tensor()
    name = p.pick(["tril", "triu", "trace", "diagonal_scatter", "select_scatter", "slice_scatter", "cov", "corrcoef",
                   "cdist", "pdist", "chain_matmul", "matrix_exp", "logdet", "mvlgamma"])  # fmt: skip
    if name == "diagonal_scatter":
        return p.torch.diagonal_scatter(one, p.tensor(), **p.options(offset=[0, 1, -1]))
    if name == "select_scatter":
        return p.torch.select_scatter(one, one.select(0, 0) if one.dim() else one, p.dim(one), p.pick([0, 1, 5]))
    if name == "slice_scatter":
        return p.torch.slice_scatter(one, p.tensor(), p.dim(one), **p.options(start=[0, 1], end=[1, 2], step=[1, 2]))
    if name in ("cdist", "chain_matmul"):
        return Inexact(p.torch.cdist(one, one) if name == "cdist" else p.torch.chain_matmul(one, one.mT))
    if name == "mvlgamma":
        return Inexact(p.torch.mvlgamma(one, p.pick([1, 2])))
    if name == "matrix_exp":
        return exponential(p, one)
    if name in ("cov", "corrcoef", "pdist", "logdet"):
        where = p.torch.nn.functional if name == "pdist" else p.torch
        return Inexact(getattr(where, name)(one))
    return getattr(p.torch, name)(one)


# ---- special functions -----------------------------------------------------------------------------------------------

SPECIAL = ["bessel_j0", "bessel_j1", "bessel_y0", "entr", "erfcx", "erf", "gammaln", "digamma", "i0e", "i1", "i1e",
           "log_ndtr", "ndtr", "ndtri", "log1p", "expit", "logit", "exp2", "expm1", "round", "sinc", "psi",
           "modified_bessel_i0", "modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0"]  # fmt: skip
SPECIAL_PAIRS = ["xlogy", "xlog1py", "zeta", "gammainc", "gammaincc", "chebyshev_polynomial_t", "hermite_polynomial_h",
                 "laguerre_polynomial_l", "legendre_polynomial_p"]  # fmt: skip


@step(3, "calls")
def special(p: OpProgram) -> Any:
    one, where = p.tensor(), p.torch.special
    if p.chance(0.7):
        # float32 kernels of Bessel functions are good to five digits; i0e computes halves in half precision, but for
        # whole vectors, whose length the CPU decides
        name = p.pick(SPECIAL)
        coarse = "bessel" in name or name == "i0e"
        return Inexact(getattr(where, name)(one.double() if coarse and not one.is_complex() else one))
    if p.chance(0.3):
        name = p.pick(["polygamma", "multigammaln", "softmax", "log_softmax", "logsumexp"])
        if name == "polygamma":
            return Inexact(where.polygamma(p.pick([0, 1, 2, -1]), one))
        return Inexact(getattr(where, name)(one, p.pick([1, 2]) if name == "multigammaln" else p.dim(one)))
    name = p.pick(SPECIAL_PAIRS)
    if "polynomial" in name:  # a recurrence stops at NaN with whatever lies in memory
        one = one.nan_to_num(0, 1, -1)
    other = p.pick([0, 1, 2, 3]) if "polynomial" in name else p.other(one)
    return Inexact(getattr(where, name)(one, other))


# ---- nn.functional ---------------------------------------------------------------------------------------------------


@step(3, "calls")
def pooled(p: OpProgram) -> Any:
    nn, dims = p.torch.nn.functional, p.pick([1, 2, 3])
    one = laid(p, floats(p, (*p.pick([(2,), (1,), ()]), size(p, 2), *[4, 3, 3][:dims])))
    kind = p.pick(["max", "avg", "adaptive_avg", "adaptive_max", "lp"])
    if kind.startswith("adaptive"):
        return Inexact(getattr(nn, f"{kind}_pool{dims}d")(one, p.pick([1, 2, 3])))
    if kind == "lp":
        return Inexact(getattr(nn, f"lp_pool{dims}d")(one, 2.0, 2))
    options = p.options(stride=[1, 2], padding=[0, 1, 2], ceil_mode=[True, False])
    if kind == "avg":
        return Inexact(getattr(nn, f"avg_pool{dims}d")(one, p.pick([1, 2, 3]), **options,
                                                       **p.options(count_include_pad=[True, False])))  # fmt: skip
    options |= p.options(dilation=[1, 2], return_indices=[True, False])
    return getattr(nn, f"max_pool{dims}d")(one.nan_to_num() if one.is_floating_point() else one, p.pick([1, 2, 3]),
                                           **options)  # fmt: skip


@step(3, "calls")
def convolved(p: OpProgram) -> Any:
    nn, dims, groups = p.torch.nn.functional, p.pick([1, 2, 3]), p.pick([1, 1, 2])
    turned = p.chance(0.3)
    one = laid(p, floats(p, (*p.pick([(2,), (1,), ()]), size(p, 2), *[4, 3, 3][:dims]))).nan_to_num(0, 1, -1)
    first, second = (2, size(p, 4 // groups)) if turned else (size(p, 4), 2 // groups)
    weight = laid(p, made_as(p, (first, second, *(p.pick([1, 2, 3]) for _ in range(dims))), p.kind(one)))
    weight = weight.nan_to_num(0, 1, -1)
    options = p.options(stride=[1, 2], padding=[0, 1, *([] if turned else ["same", "valid"])], dilation=[1, 2])
    bias = made_as(p, (4,), p.kind(one)).nan_to_num(0, 1, -1) if p.chance(0.4) else None
    name = f"conv_transpose{dims}d" if turned else f"conv{dims}d"
    return Inexact(shares(getattr(nn, name)(one, weight, bias, groups=groups, **options)))


@step(3, "calls")
def layered(p: OpProgram) -> Any:
    nn, torch = p.torch.nn.functional, p.torch
    one = laid(p, floats(p, (2, size(p, 4), *p.pick([(), (3,), (2, 3)])))).nan_to_num(0, 1, -1)
    name = p.pick(["layer_norm", "batch_norm", "group_norm", "instance_norm", "rms_norm", "local_response_norm",
                   "linear", "bilinear", "normalize", "cosine_similarity", "pairwise_distance", "pixel_shuffle",
                   "channel_shuffle", "interpolate", "unfold", "embedding", "one_hot", "gumbel_shape"])  # fmt: skip
    kind = p.kind(one)
    if name in ("layer_norm", "rms_norm"):
        return Inexact(shares(getattr(nn, name)(one, one.shape[-size(p, 1) :])))
    if name == "batch_norm":
        mean, var = made_as(p, (4,), kind).nan_to_num(0, 1, -1), torch.ones(4, dtype=one.dtype)
        found = nn.batch_norm(one, mean, var, training=p.pick([True, False]))
        return Inexact([shares(found), mean, var])
    if name == "group_norm":
        return Inexact(shares(nn.group_norm(one, p.pick([1, 2, 4, 3]))))
    if name in ("instance_norm", "normalize"):
        return Inexact(shares(getattr(nn, name)(one)))
    if name == "local_response_norm":
        return Inexact(nn.local_response_norm(one, 2))
    if name == "linear":
        weight = made_as(p, (3, size(p, one.shape[-1])), kind).nan_to_num(0, 1, -1)
        return Inexact(nn.linear(one, weight, made_as(p, (3,), kind).nan_to_num(0, 1, -1) if p.chance(0.5) else None))
    if name == "bilinear":
        return Inexact(nn.bilinear(one, one, made_as(p, (2, one.shape[-1], one.shape[-1]), kind).nan_to_num(0, 1, -1)))
    return looked_up(p, name, one)


def looked_up(p: OpProgram, name: str, one: Any) -> Any:
    nn, torch = p.torch.nn.functional, p.torch
    if name in ("cosine_similarity", "pairwise_distance"):
        return Inexact(shares(getattr(nn, name)(one, one.flip(0), **p.options(eps=[1e-3]))))
    if name == "pixel_shuffle":
        return nn.pixel_shuffle(one, p.pick([1, 2]))
    if name == "channel_shuffle":
        return nn.channel_shuffle(one, p.pick([1, 2, 3]))
    if name == "interpolate":
        mode = p.pick(["nearest", "linear", "bilinear", "area", "nearest-exact", "bicubic"])
        corners = {} if "nearest" in mode or mode == "area" else p.options(align_corners=[True, False])
        return Inexact(shares(nn.interpolate(one, **p.pick([{"scale_factor": 2}, {"size": 4}]), mode=mode, **corners)))
    if name == "unfold":
        return nn.unfold(one, p.pick([1, 2]), **p.options(padding=[1], stride=[1, 2]))
    places = torch.tensor([[0, 2], [1, p.pick([0, 1, 2, 9])]], dtype=p.dtype(["int64", "int64", "int32", "float32"]))
    if name == "one_hot":
        return nn.one_hot(places, **p.options(num_classes=[3, 10]))
    return Inexact(nn.embedding(places, floats(p, (3, 2)), **p.options(padding_idx=[0, -1, 5])))


@step(3, "calls")
def lost(p: OpProgram) -> Any:
    """Losses."""
    nn = p.torch.nn.functional
    one = floats(p, (3, size(p, 4))).nan_to_num(0, 1, -1)
    same = made_as(p, tuple(one.shape), p.kind(one)).nan_to_num(0, 1, -1)
    name = p.pick(["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "kl_div", "nll_loss",
                   "cross_entropy", "binary_cross_entropy", "binary_cross_entropy_with_logits", "poisson_nll_loss",
                   "hinge_embedding_loss", "margin_ranking_loss", "cosine_embedding_loss", "multi_margin_loss",
                   "multilabel_soft_margin_loss", "triplet_margin_loss", "gaussian_nll_loss"])  # fmt: skip
    options = p.options(reduction=["none", "sum", "mean", "avg"] if p.chance(0.2) else ["none", "sum", "mean"])
    if name in ("nll_loss", "cross_entropy", "multi_margin_loss"):
        last = max(
            min(one.shape[1] - 1, 3), 0
        )  # one target at most is wrong: threads race to name the first of several
        target = p.torch.tensor([0, last, p.pick([1, 2, -1, 4, -100])], dtype=p.dtype(["int64", "int64", "int32"]))
        more = {} if name == "multi_margin_loss" else p.options(ignore_index=[0])
        smooth = p.options(label_smoothing=[0.1]) if name == "cross_entropy" else {}
        return Inexact(getattr(nn, name)(one, target, **more, **smooth, **options))
    if name in ("margin_ranking_loss", "triplet_margin_loss"):  # differences of distances
        return Inexact(shares(getattr(nn, name)(one, same, same.sign(), **options)))
    if name == "cosine_embedding_loss":
        return Inexact(nn.cosine_embedding_loss(one, same, p.torch.tensor([1, -1, 1]), **options))
    if name == "gaussian_nll_loss":
        return Inexact(nn.gaussian_nll_loss(one, same, same.abs(), **options))
    if name == "binary_cross_entropy":
        one, same = (t.clamp(0, 1) for t in (one, same))
    return Inexact(shares(getattr(nn, name)(one, same, **options)))  # exponentials and products that cancel


# ---- scatter and friends ---------------------------------------------------------------------------------------------


@step(3, "calls")
def scattered(p: OpProgram) -> Any:
    one = made_as(p, p.pick([(3,), (2, 3), (3, 2), ()]), p.pick(DTYPES))
    dim = p.dim(one)
    at = p.torch.tensor(p.random.choices([0, 1, 1, 0, 0, 1, 2 if p.chance(0.1) else 1], k=max(one.numel(), 1)))
    at = at[: one.numel()].reshape(one.shape).to(p.dtype(["int64"] * 9 + ["int32"]))
    source = made_as(p, tuple(one.shape), p.kind(one) if p.chance(0.9) else p.pick(DTYPES))
    name = p.pick(["scatter", "scatter_add", "scatter_reduce", "gather", "index_put", "index_reduce", "scatter_by"])
    p.words.append(repr(at.tolist()))
    if name == "gather":
        return called(p, "gather", one, dim, at)
    if name == "scatter_add":
        return Inexact(one.scatter_add(dim, at, source))
    if name == "scatter":  # which of several sources stays is left open
        return one.scatter(dim, at, p.number())
    if name == "scatter_by":
        return Inexact(one.scatter(dim, at, source, reduce=p.pick(["add", "multiply", "mean"])))
    if name == "index_put":
        return Inexact(one.index_put((at.flatten()[:1].long(),), source.flatten()[:1], p.pick([True, False])))
    way = p.pick(["sum", "prod", "mean", "amax", "amin", "max"])
    include = p.options(include_self=[True, False])
    if name == "index_reduce":
        return Inexact(one.index_reduce(dim, at.flatten()[: one.shape[0] if one.dim() else 1], source, way, **include))
    return Inexact(one.scatter_reduce(dim, at, source, way, **include))


# ---- views of views, written ----------------------------------------------------------------------------------------


@step(3, "calls")
def written_deep(p: OpProgram) -> Any:
    """A view of a view of a view is written; all who share the memory are looked at."""
    one = p.target()
    for _ in range(3):
        name = p.pick(["transpose", "unsqueeze", "narrow", "flip_none", "diagonal", "unfold", "expand", "squeeze"])
        if name == "transpose" and one.dim():
            one = one.transpose(p.random.randrange(one.dim()), p.random.randrange(one.dim()))
        elif name == "unsqueeze" and one.dim() < 5:
            one = one.unsqueeze(0)
        elif name == "narrow" and one.dim() and one.shape[-1]:
            one = one.narrow(-1, one.shape[-1] - 1, 1)
        elif name == "diagonal" and one.dim() > 1:
            one = one.diagonal()
        elif name == "unfold" and one.dim() and one.shape[0] > 1:
            one = one.unfold(0, 2, 2)
        elif name == "expand" and one.dim():
            one = one.expand(2, *one.shape) if p.chance(0.2) else one.expand_as(one)
        elif name == "squeeze":
            one = one.squeeze()
    write = p.pick(["add_", "zero_", "fill_", "copy_", "neg_", "masked_fill_", "mul_", "clamp_", "logical_not_"])
    if write == "masked_fill_":
        return one.masked_fill_(one == 0, p.number())
    if write in ("zero_", "neg_", "logical_not_"):
        return Inexact(getattr(one, write)()) if one.is_complex() else getattr(one, write)()
    found = one.clamp_(0, 2) if write == "clamp_" else getattr(one, write)(p.number())
    if write == "mul_" and loose(p, one):
        one.fill_(1)
        return None
    return found


# ---- out= of more ops ------------------------------------------------------------------------------------------------

OUT_UNARY = ["abs", "exp", "sqrt", "sign", "logical_not", "bitwise_not", "isposinf", "signbit", "sigmoid", "square"]
OUT_REDUCED = ["mean", "amax", "any", "all", "std", "argmax", "prod", "logsumexp", "nansum", "cumprod"]
OUT_INDEXED = ["gather", "index_select", "take", "masked_select", "sort"]
OUT_PAIRS = ["div", "pow", "fmod", "floor_divide", "lt", "ne", "logical_xor", "bitwise_or", "fmax", "atan2", "matmul",
             "mm", "mv", "dot", "outer", "hypot", "copysign"]  # fmt: skip


@step(4, "calls")
def more_out(p: OpProgram) -> Any:
    one, torch = p.tensor(), p.torch
    family = p.random.choice([OUT_UNARY, OUT_REDUCED, OUT_PAIRS, OUT_INDEXED])
    name = p.pick(family)
    kind = p.kind(one) if p.chance(0.4) else p.pick(DTYPES)
    out = torch.zeros(p.pick([(0,), tuple(one.shape), (2,)]), dtype=getattr(torch, kind))
    at = torch.zeros(p.pick([(1,), (2,), ()]), dtype=torch.int64)
    if name == "sort":
        return torch.sort(one, dim=p.dim(one), stable=True, out=(out, torch.zeros(0, dtype=torch.int64)))
    if name in ("gather", "index_select"):
        return getattr(torch, name)(one, p.dim(one), at, out=out)
    if name in ("take", "masked_select"):
        return getattr(torch, name)(one, at if name == "take" else one == 0, out=out)
    if family is OUT_PAIRS:
        return Inexact(getattr(torch, name)(one, p.other(one), out=out))
    if family is OUT_UNARY:
        return Inexact(getattr(torch, name)(one, out=out))
    keep = p.options(keepdim=[True, False]) if name != "cumprod" else {}
    return Inexact(getattr(torch, name)(one, p.dim(one), **keep, out=out))


# ---- wrong calls -----------------------------------------------------------------------------------------------------


@step(3, "calls")
def called_wrongly(p: OpProgram) -> Any:
    """One argument too few or too many, of a wrong type or with an unknown name."""
    one = p.tensor()
    name = p.pick(["add", "sum", "view", "transpose", "softmax", "clamp", "where", "cat", "matmul", "index_select",
                   "masked_fill", "split", "topk", "squeeze", "reshape", "flatten", "permute", "expand", "lerp",
                   "norm", "cumsum", "roll", "gather", "repeat", "tril", "argmax", "mean", "std", "sort"])  # fmt: skip
    extra = p.random.choice(
        [(), ("a",), (None,), (1.5,), ([1, "a"],), (one, one, one, one, one), ({},), (1, 2, 3, 4, 5, 6)]
    )
    named = p.random.choice([{}, {}, {"unknown": 1}, {"dim": "a"}, {"dim": 0}, {"out": 1}])
    p.words.append(f"{[type(value).__name__ for value in extra]} {named}")
    if hasattr(p.torch.Tensor, name) and p.chance(0.5):
        return Inexact(getattr(one, name)(*extra, **named))
    return Inexact(getattr(p.torch, name)(one, *extra, **named))


# ---- complex parts ---------------------------------------------------------------------------------------------------


@step(2, "calls")
def of_parts(p: OpProgram) -> Any:
    one, torch = p.tensor(), p.torch
    name = p.pick(["complex", "polar", "view_as_complex", "view_as_real", "conj_written", "imag_written", "is_conj",
                   "real_of_conj", "sum_of_conj", "product_of_conj"])  # fmt: skip
    if name in ("complex", "polar"):
        found = getattr(torch, name)(one, p.tensor())
        return Inexact(found) if name == "polar" else found
    if name in ("view_as_complex", "view_as_real"):
        return getattr(torch, name)(one)
    other = p.tensor(COMPLEX)
    other = (torch.arange(4.0).reshape(2, 2) * (1 - 2j)) if not other.is_complex() else other.clone()
    turned = other.conj()
    if name == "conj_written":
        return turned.mul_(2).add_(1j)
    if name == "imag_written":
        other.imag.fill_(p.pick([1, 0.5]))
        return other
    if name == "is_conj":
        return [turned.is_conj(), turned.imag.is_neg(), turned.conj().is_conj(), turned.imag, turned.real]
    if name == "real_of_conj":
        return turned.imag + 1
    return Inexact(turned.sum() if name == "sum_of_conj" else turned * other)


# ---- numbers of many kinds -------------------------------------------------------------------------------------------


@step(2, "calls")
def counted(p: OpProgram) -> Any:
    one = p.tensor()
    name = p.pick(["quantile", "nanquantile", "var_mean", "std_mean", "count_nonzero", "histogram", "trapezoid",
                   "cumsum_by", "diff_by", "gradient", "bincount_by", "combinations", "tensor_split", "rot90", "vander",
                   "renorm", "dist", "cross"])  # fmt: skip
    if name in ("quantile", "nanquantile"):
        return Inexact(getattr(p.torch, name)(one, p.pick([0.5, 0.25, 1.0, 2.0]), **p.options(dim=[p.dim(one)])))
    if name in ("var_mean", "std_mean"):
        return Inexact(getattr(p.torch, name)(one, **p.options(dim=[p.dim(one)], correction=[0, 1], keepdim=[True])))
    if name == "count_nonzero":
        return p.torch.count_nonzero(one, p.dim(one))
    if name == "cumsum_by":
        found = one.cumsum(p.dim(one), dtype=p.dtype([*FLOATS, *INTEGERS])) if whole(p, one) else None
        return Inexact(found)
    if name == "diff_by":
        return Inexact(p.torch.diff(one, dim=p.dim(one), **p.options(prepend=[one], append=[one])))
    if name == "gradient":
        return Inexact(p.torch.gradient(one, **p.options(dim=[p.dim(one)], spacing=[2.0])))
    if name == "combinations":
        return p.torch.combinations(one.flatten()[:4], **p.options(r=[1, 2, 3], with_replacement=[True]))
    if name == "renorm":
        return Inexact(p.torch.renorm(one, 2, p.dim(one), 1.5))
    if name in ("dist", "cross"):
        return Inexact(getattr(p.torch, name)(one, p.tensor()))
    if name == "vander":
        return Inexact(p.torch.vander(one, **p.options(N=[2, 3], increasing=[True])))
    if name == "tensor_split":
        return one.tensor_split(p.pick([(1, 2), (0,), (5,), 2]), p.dim(one))
    return one.rot90(p.pick([1, 2, -1]), p.pick([(0, 1), (1, 0), (0, 0), (0, 3)])) if name == "rot90" else None
