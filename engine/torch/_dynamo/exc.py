"""The errors of capturing, by PyTorch's names, and what they say."""

from __future__ import annotations

from typing import Any

SITE = "https://meta-pytorch.github.io/compile-graph-break-site/gb"


class TorchDynamoException(RuntimeError):
    """Any of them."""

    __module__ = "torch._dynamo.exc"


class Unsupported(TorchDynamoException):
    """Something stands in the way of one whole graph."""

    __module__ = "torch._dynamo.exc"


class TorchRuntimeError(TorchDynamoException):
    """An op failed while the graph was made."""

    __module__ = "torch._dynamo.exc"


class InternalTorchDynamoError(TorchDynamoException):
    """For programs that catch it."""

    __module__ = "torch._dynamo.exc"


class BackendCompilerFailed(TorchDynamoException):
    """The backend raised an error.

    Attributes:
        inner_exception: that error.
    """

    __module__ = "torch._dynamo.exc"

    def __init__(self, backend: Any, inner_exception: Exception) -> None:
        name = getattr(backend, "__name__", "?")
        super().__init__(f"backend={name!r} raised:\n{type(inner_exception).__name__}: {inner_exception}")
        self.backend_name, self.inner_exception = name, inner_exception


class RecompileError(TorchDynamoException):
    """A graph would have to be made again, and the configuration forbids it."""

    __module__ = "torch._dynamo.exc"


def explained(title: str, explanation: str, hints: tuple[str, ...], context: str, number: str) -> str:
    """The text of a graph break."""
    told = "".join(f"  Hint: {hint}\n" for hint in hints)
    return (
        f"{title}\n  Explanation: {explanation}\n{told}\n  Developer debug context: {context}\n\n For more details "
        f"about this graph break, please visit: {SITE}/gb{number}.html"
    )


def _branch() -> str:
    return explained(
        "Data-dependent branching",
        "Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`). Dynamo does not support tracing dynamic "
        "control flow.",
        (
            "For the common pattern `if tensor_cond: x = transform(x)` (e.g. clamping inf/nan values), consider making "
            "the code branchless by always applying the transform. Operations like torch.clamp, torch.nan_to_num, and "
            "torch.where are typically no-ops on well-behaved inputs and compile without graph breaks.",
            "This graph break is fundamental - it is unlikely that Dynamo will ever be able to trace through your "
            "code. Consider finding a workaround.",
            "Use `torch.cond` to express dynamic control flow.",
        ),
        "attempted to jump with TensorVariable()",
        "0170",
    )


def _printed() -> str:
    return explained(
        "Failed to trace builtin operator",
        "Dynamo does not know how to trace builtin operator `print` with argument types ['Tensor'] (has_kwargs False)",
        (
            "Avoid calling builtin `print` with argument types ['Tensor']. Consider using an equivalent alternative "
            "function/method to `print`.",
            "If you are attempting to call a logging function (e.g. `print`), you can try adding it to "
            "`torch._dynamo.config.reorderable_logging_functions`.",
            "Please report an issue to PyTorch.",
        ),
        "builtin print [<class 'torch._dynamo.variables.tensor.TensorVariable'>] False",
        "0059",
    )


def _backward() -> str:
    return explained(
        "Unsupported Tensor.backward() call",
        "Dynamo currently does not support tracing `Tensor.backward()` when trace_autograd_ops is off.",
        ("Set torch._dynamo.trace_autograd_ops=True",),
        "call_method TensorVariable() backward None None None None",
        "0123",
    )


def _method(name: str) -> str:
    return explained(
        f"Tensor.{name}() call", f"`Tensor.{name}()` asks for the elements of a tensor, which a graph does not have.",
        ("Do it outside of the compiled function.",), f"call_method TensorVariable() {name}", "0109",
    )  # fmt: skip


def user_break(message: str | None) -> str:
    """What ``torch._dynamo.graph_break`` says."""
    return explained(
        "Call to `torch._dynamo.graph_break()`",
        f"User-inserted graph break. Message: {message}",
        ("Remove the `torch._dynamo.graph_break()` call.",),
        "Called `torch._dynamo.graph_break()` with args `[]`, kwargs `{}`",
        "0025",
    )


def disabled_call(function: Any, reason: str | None) -> str:
    """What a call of a function says that is not to be compiled."""
    return explained(
        "Skip calling `torch.compiler.disable()`d function",
        f"Skip calling function `{function}` since it was wrapped with `torch.compiler.disable` (reason: {reason})",
        ("Remove the `torch.compiler.disable` call",),
        f"{function}",
        "0098",
    )


def asked(method: str) -> str:
    """What asking a tensor for its elements says."""
    if method == "__bool__":
        return _branch()
    if method in ("__repr__", "__str__", "__format__", "print"):
        return _printed()
    return _backward() if method == "backward" else _method(method)


def failed(name: str, error: Exception) -> str:
    """What an op says that fails while the graph is made."""
    return explained(
        "RuntimeError when making fake tensor call",
        f"Dynamo failed to run FX node with fake tensors: {name}: got {type(error).__name__}({str(error)!r})",
        (
            "Your code may result in an error when running in eager. Please double check that your code doesn't "
            "contain a similar error when actually running eager/uncompiled. You can do this by removing the "
            '`torch.compile` call, or by using `torch.compiler.set_stance("force_eager")`. ',
        ),
        "",
        "4315",
    )
