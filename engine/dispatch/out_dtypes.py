"""Which dtypes ``out=`` may have, op by op, and what PyTorch says of others.

Elementwise ops take any dtype that the result can be cast to (TensorIterator's rule). The ops listed here ask for one
dtype, compute in the dtype of ``out``, or word their refusal themselves.
"""

from __future__ import annotations

from stridescope.engine.dtype import FLOAT, can_cast, cpp_name, dtype, scalar_name, uint8

# What is said when the dtype is not the result's: {want} and {got} as PyTorch's scalar types, {Want} and {Got} in C++.
_UNARY = "Found dtype {got} but expected {want}"
_STRUCTURED = "Expected out tensor to have dtype {Want}, but got {Got} instead"
_SELECTING = "{name}(): self and result must have the same scalar type"
EXACT: dict[str, str] = {
    **dict.fromkeys(
        ("abs", "absolute", "neg", "negative", "floor", "ceil", "round", "trunc", "fix", "sign", "sgn", "frac",
         "bitwise_not", "conj_physical", "clamp", "clip"), _UNARY),
    **dict.fromkeys(
        ("mm", "matmul", "bmm", "mv", "addmm", "addmv", "baddbmm", "gather", "tril", "triu", "diag", "norm", "argmax",
         "argmin", "linalg_vector_norm", "scatter", "scatter_add", "index_copy", "index_add"), _STRUCTURED),
    **dict.fromkeys(("index_select", "masked_select"), _SELECTING),
    **dict.fromkeys(("isposinf", "isneginf", "signbit"), "{name} does not support non-boolean outputs."),
    **dict.fromkeys(("any", "all"), "{name} only supports bool tensor for result, got: {got}"),
    **dict.fromkeys(
        ("amax", "amin"),
        "Expected the dtype for input and out to match, but got {want} for input's dtype and {got} for out's dtype."),
    "nan_to_num": "nan_to_num: dtype of out: {got} should be same as input: {want}",
    "heaviside": "heaviside is not yet implemented for tensors with different dtypes.",
    "float_power": "the output given to float_power has dtype {got} but the operation's result requires dtype {want}",
    "dot": "result dtype {got} does not match input dtype {want}",
    "inner": "tensordot: Expected the output tensor to have dtype {want}, but got an output tensor with dtype {got}",
    "where": "Expected out type to be {want} but got {got}",
    "take": "take(): self and out expected to have the same dtype, but got self.dtype = {want} and out.dtype = {got}",
    "nonzero": "nonzero: Expected out tensor to have scalar type Long but got scalar type{got}",
    "multinomial": "multinomial expects Long tensor out, got: {got}",
}  # fmt: skip
# What is said when the result cannot be cast, where it is not TensorIterator that says it.
CAST: dict[str, tuple[type[Exception], str]] = {
    **dict.fromkeys(
        ("cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "column_stack"),
        (TypeError, "torch.cat(): input types can't be cast to the desired output type {got}"),
    ),
    "ldexp": (RuntimeError, "ldexp can't be cast to the desired output type {got}"),
}
# Ops that give complex numbers' real parts to any dtype that holds them.
OF_COMPLEX = frozenset(("abs", "absolute"))
# Reductions whose ``dtype`` is that of ``out``, where none is given.
OF_OUT = frozenset(("sum", "prod", "cumsum", "cumprod", "nansum", "arange", "linspace", "logspace", "range", "eye"))


def refusal(name: str, want: dtype, got: dtype) -> Exception | None:
    """What PyTorch raises when an op whose result is of ``want`` shall write it into a tensor of ``got``."""
    if name == "logsumexp" and got.category < FLOAT:
        return RuntimeError(f"logsumexp(): Expected floating point type for result tensor, but got: {scalar_name(got)}")
    if got is want or (name in ("any", "all") and got is uint8):
        return None
    words = {"name": name, "want": scalar_name(want), "got": scalar_name(got), "Want": cpp_name(want),
             "Got": cpp_name(got)}  # fmt: skip
    if name in EXACT:
        return RuntimeError(EXACT[name].format(**words))
    if name == "logsumexp" or can_cast(want, got):
        return None
    kind, text = CAST.get(name, (RuntimeError, "result type {want} can't be cast to the desired output type {got}"))
    return kind(text.format(**words))
