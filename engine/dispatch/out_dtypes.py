"""Which dtypes ``out=`` may have, op by op, and what PyTorch says of others.

Elementwise ops take any dtype that the result can be cast to (TensorIterator's rule). The ops listed here ask for one
dtype, compute in the dtype of ``out``, or word their refusal themselves.
"""

from __future__ import annotations

from stridescope.engine.dtype import FLOAT, can_cast, cpp_name, dtype, scalar_name

# What is said when the dtype is not the result's: {want} and {got} as PyTorch's scalar types, {Want} and {Got} in C++.
_UNARY = "Found dtype {got} but expected {want}"
_STRUCTURED = "Expected out tensor to have dtype {Want}, but got {Got} instead"
_SELECTING = "{name}(): self and result must have the same scalar type"
EXACT: dict[str, str] = {
    **dict.fromkeys(
        ("abs", "absolute", "neg", "negative", "floor", "ceil", "round", "trunc", "fix", "sign", "sgn", "frac",
         "bitwise_not", "conj_physical", "clamp", "clip", "clamp_min", "clamp_max"), _UNARY),
    **dict.fromkeys(
        ("mm", "matmul", "bmm", "mv", "addmm", "addmv", "baddbmm", "gather", "tril", "triu", "diag", "norm", "argmax",
         "argmin", "linalg_vector_norm", "scatter", "scatter_add", "index_copy", "index_add", "alias_copy",
         "as_strided_copy", "detach_copy", "diagonal_copy", "expand_copy", "permute_copy", "select_copy", "slice_copy",
         "squeeze_copy", "t_copy", "transpose_copy", "unfold_copy", "unsqueeze_copy", "view_as_complex_copy",
         "view_as_real_copy", "view_copy", "linalg_inv", "inverse", "softmax", "log_softmax", "renorm", "isin",
         "linear"),
        _STRUCTURED),
    **dict.fromkeys(("index_select", "masked_select"), _SELECTING),
    **dict.fromkeys(("isposinf", "isneginf", "signbit"), "{name} does not support non-boolean outputs."),
    **dict.fromkeys(("any", "all"), "{name} only supports bool tensor for result, got: {got}"),
    **dict.fromkeys(
        ("amax", "amin"),
        "Expected the dtype for input and out to match, but got {want} for input's dtype and {got} for out's dtype."),
    "nan_to_num": "nan_to_num: dtype of out: {got} should be same as input: {want}",
    "heaviside": "heaviside is not yet implemented for tensors with different dtypes.",
    "float_power": "the output given to float_power has dtype {got} but the operation's result requires dtype {want}",
    **dict.fromkeys(("dot", "vdot"), "result dtype {got} does not match input dtype {want}"),
    "inner": "tensordot: Expected the output tensor to have dtype {want}, but got an output tensor with dtype {got}",
    "where": "Expected out type to be {want} but got {got}",
    "take": "take(): self and out expected to have the same dtype, but got self.dtype = {want} and out.dtype = {got}",
    "narrow_copy": "Expected self.dtype() == output.dtype() to be true, but got false.  (Could this error message be "
    "improved?  If so, please report an enhancement request to PyTorch.)",
    "nonzero": "nonzero: Expected out tensor to have scalar type Long but got scalar type{got}",
    "multinomial": "multinomial expects Long tensor out, got: {got}",
    **dict.fromkeys(
        ("bucketize", "searchsorted"),
        "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on "
        "whether out_int32 flag is True, but we got output tensor's dtype {got} and out_int32 flag is {short}"),
    **dict.fromkeys(
        ("complex", "polar"), "Expected object of scalar type {want} but got scalar type {got} for argument 'out'"),
}  # fmt: skip
_TRANSFORM = "{name} expects a {sort} output tensor, but got {got}"
# What is said when the result cannot be cast, where it is not TensorIterator that says it.
CAST: dict[str, tuple[type[Exception], str]] = {
    **dict.fromkeys(
        ("cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "column_stack"),
        (TypeError, "torch.cat(): input types can't be cast to the desired output type {got}"),
    ),
    "ldexp": (RuntimeError, "ldexp can't be cast to the desired output type {got}"),
}
# Ops with several results that ask for the dtype of each.
EXACT_ALL = frozenset(
    (
        "aminmax", "max", "min", "topk", "sort", "slogdet", "linalg_slogdet", "linalg_svd", "linalg_qr", "linalg_eigh",
        "linalg_lu", "linalg_lu_factor", "linalg_lu_factor_ex", "linalg_cholesky_ex", "linalg_inv_ex",
        "linalg_solve_ex", "linalg_ldl_factor", "linalg_ldl_factor_ex", "unbind_copy", "split_with_sizes_copy",
    )
)  # fmt: skip
# What is said of the second result, the places of the first.
PLACES: dict[str, str] = {
    **dict.fromkeys(
        ("median", "nanmedian"),
        "Expected tensor for argument #1 'indices' to have scalar type Long; but got torch.{got}Tensor instead (while "
        "checking arguments for {name})"),
    "mode": "expected scalar type 'Long' but got '{got}' for indices output",
    "kthvalue": "output indices must be of scalar type Long",
    **dict.fromkeys(("cummax", "cummin"), "expected scalar_type Long but found {got}"),
    "frexp": "torch.frexp() expects exponent to have int dtype but got {Got}",
}  # fmt: skip
# What is said of the first result, where that has to be of one dtype and the second has its own rule.
FIRST: dict[str, str] = dict.fromkeys(("cummax", "cummin"), "expected scalar_type {want} but found {got}")
# Fourier transforms.
TRANSFORMS = frozenset(f"fft_{kind}{dims}" for kind in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
                       for dims in ("", "2", "n"))  # fmt: skip


def refusal_of_one(name: str, place: int, want: dtype, got: dtype) -> Exception | None:
    """What PyTorch raises when one of several results, the one at ``place``, shall be written into ``got``."""
    worded = FIRST if place == 0 else PLACES if place == 1 else {}
    if got is want or (name not in EXACT_ALL and name not in worded):
        return refusal("", want, got)
    text = _STRUCTURED if name in EXACT_ALL else worded[name]
    return RuntimeError(text.format(**_words(name, want, got)))


def expected_dtype(want: dtype, got: dtype) -> RuntimeError:
    """What PyTorch raises when a result is of ``want`` and nothing else will do."""
    return RuntimeError(_STRUCTURED.format(**_words("", want, got)))


def _words(name: str, want: dtype, got: dtype) -> dict[str, str]:
    return {"name": name, "want": scalar_name(want), "got": scalar_name(got), "Want": cpp_name(want),
            "Got": cpp_name(got), "short": str(want.name == "int32")}  # fmt: skip


def other_dtype(asked: dtype, got: dtype) -> RuntimeError:
    """What PyTorch raises when a factory is asked for one dtype and given an ``out`` of another."""
    return RuntimeError(f"dtype {scalar_name(asked)} does not match dtype of out parameter ({scalar_name(got)})")


def _refused_transform(name: str, want: dtype, got: dtype) -> RuntimeError | None:
    """What a Fourier transform says; in another precision most write what they give."""
    label = name.removeprefix("fft_").replace("2", "n")
    if got.is_complex is want.is_complex and got.category >= FLOAT:
        return RuntimeError(_UNARY.format(**_words(name, want, got))) if label == "ihfft" else None
    sort = "complex" if want.is_complex else "floating point"
    return RuntimeError(_TRANSFORM.format(name=label.replace("ifftn", "fftn"), sort=sort, got=scalar_name(got)))


def refusal(name: str, want: dtype, got: dtype) -> Exception | None:
    """What PyTorch raises when an op whose result is of ``want`` shall write it into a tensor of ``got``."""
    if name == "logsumexp" and got.category < FLOAT:
        return RuntimeError(f"logsumexp(): Expected floating point type for result tensor, but got: {scalar_name(got)}")
    if got is want or (name in ("any", "all") and got.name in ("bool", "uint8")):
        return None
    if name in TRANSFORMS:
        return _refused_transform(name, want, got)
    words = _words(name, want, got)
    if name in EXACT:
        return RuntimeError(EXACT[name].format(**words))
    if name == "logsumexp" or can_cast(want, got):
        return None
    worded = "" if name == "ldexp" and got.category >= FLOAT else name
    kind, text = CAST.get(worded, (RuntimeError, "result type {want} can't be cast to the desired output type {got}"))
    return kind(text.format(**words))
