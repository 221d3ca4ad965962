"""Tensors that change under the user's hand: resize_, set_, and the in-place forms of views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stridescope.engine.autograd.history import check_inference
from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.dispatch.op import Op, define
from stridescope.engine.dtype import cpp_name, scalar_name
from stridescope.engine.layout import Layout, contiguous_strides, memory_format, preserve_format
from stridescope.engine.ops import views, views_select
from stridescope.engine.ops.copying import format_strides
from stridescope.engine.ops.determinism import Determinism, known_value
from stridescope.engine.ops.storage_objects import UntypedStorage, storage_of
from stridescope.engine.storage import Storage
from stridescope.engine.tensor import Tensor, bump_version, moved, resize, strided


def relayout(tensor: Tensor, layout: Layout, storage: Storage | None = None) -> None:
    """Let ``tensor`` itself read another layout, or another storage."""
    if storage is not None:
        tensor.storage_ = storage
    tensor._array = strided(tensor.storage_, layout, tensor.dtype)
    if not tensor._array.size:
        tensor._empty_offset = layout.offset
    moved(tensor)


def _grow(tensor: Tensor, layout: Layout) -> None:
    needed = 0 if 0 in layout.sizes else layout.extent() * tensor.dtype.itemsize
    storage = tensor.storage_
    if needed > storage.nbytes:
        if not storage.resizable:
            raise RuntimeError("Trying to resize storage that is not resizable")
        before = storage.nbytes
        resize(storage, needed)
        if Determinism.enabled and Determinism.fill:
            item = tensor.dtype.np.itemsize
            storage.raw[-(-before // item) * item : needed // item * item].view(tensor.dtype.np)[...] = known_value(
                tensor.dtype.np
            )


def _resize(self: Tensor, size: Sequence[int], memory_format: memory_format | None = None) -> Tensor:
    if self._requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    if self._inference:
        check_inference(self)
    sizes = tuple(size)
    for length in sizes:
        if length < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {length}: {list(sizes)}")
    if sizes == self._array.shape and memory_format is None:
        return self
    if memory_format is preserve_format:
        raise RuntimeError("Unsupported memory format Preserve")
    layout = Layout(sizes, format_strides(sizes, memory_format), self.offset)
    _grow(self, layout)
    relayout(self, layout)
    bump_version(self)
    return self


resize_ = define(
    "resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
    doc="Gives the tensor itself other sizes, row-major; its storage grows when it has to.",
    composite=_resize,
    function=False,
)
define(
    "resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
    doc="resize_ to the sizes of another tensor.",
    composite=lambda self, the_template, memory_format=None: _resize(self, the_template._array.shape, memory_format),
)


def set_(
    self: Tensor,
    source: Any = None,
    storage_offset: int = 0,
    size: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
) -> Tensor:
    """Let the tensor itself read another tensor's or storage's memory."""
    if self._requires_grad and self._node is None and grad_mode.enabled:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    storage, whole = _source(self, source)
    if size is None:
        layout = whole
    else:
        sizes = tuple(size)
        layout = Layout(sizes, contiguous_strides(sizes) if stride is None else tuple(stride), storage_offset)
        needed = 0 if 0 in sizes else layout.extent() * self.dtype.itemsize
        if needed > storage.nbytes:
            if not storage.resizable:
                raise RuntimeError("Trying to resize storage that is not resizable")
            resize(storage, needed)
    relayout(self, layout, storage)
    bump_version(self)
    return self


def _source(self: Tensor, source: Any) -> tuple[Storage, Layout]:
    if source is None:
        return UntypedStorage()._over, Layout((0,), (1,))
    if isinstance(source, Tensor):
        if source.dtype is not self.dtype:
            raise RuntimeError(
                f"Could not set tensor of type {cpp_name(source.dtype)} to a tensor of type {cpp_name(self.dtype)}"
            )  # fmt: skip
        return source.storage_, source.layout_
    storage, kind = storage_of(source)
    if kind is not None and kind is not self.dtype:
        raise RuntimeError(
            f"Expected a Storage of type {cpp_name(self.dtype)} or an UntypedStorage, but got type {scalar_name(kind)} "
            "for argument 1 'storage'"
        )
    length = storage.nbytes // self.dtype.itemsize
    return storage, Layout((length,), (1,))


def _in_place(op: Op) -> Callable[..., Tensor]:
    """The rule of a view op applied to the tensor itself."""
    rule: Any = op.view
    whole = getattr(rule, "by_tensor", False)

    def run(self: Tensor, *args: Any) -> Tensor:
        if op.name == "t" and self._array.ndim > 2:
            raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {self._array.ndim}D")
        relayout(self, rule(self if whole else self.layout_, *args))
        return self

    run.relayouts = True  # type: ignore[attr-defined]
    return run


def _define_in_place(op: Op, node: str) -> Op:
    name = op.schema.name
    text = op.schema.text.replace(name, f"{name}_", 1).replace("Tensor(a) self", "Tensor(a!) self", 1)
    return define(
        text.replace("-> Tensor(a)", "-> Tensor(a!)"),
        doc=f"{name} of the tensor itself: its own sizes and strides change.",
        run=_in_place(op),
        grads={", ".join(f.inputs): f.function for f in op.derivative.formulas},  # type: ignore[union-attr]
        node=node,
        function=False,
    )


transpose_ = _define_in_place(views.transpose, "TransposeBackward1")
for _op, _node in (
    (views.t, "TBackward1"),
    (views.unsqueeze, "UnsqueezeBackward1"),
    (views.squeeze, "SqueezeBackward3"),
    (views.squeeze_dim, "SqueezeBackward4"),
    (views.squeeze_dims, "SqueezeBackward5"),
    (views_select.as_strided, "AsStridedBackward1"),
):
    _define_in_place(_op, _node)
for _name, _first, _second in (("swapaxes_", "axis0", "axis1"), ("swapdims_", "dim0", "dim1")):
    define(
        f"{_name}(Tensor(a!) self, int {_first}, int {_second}) -> Tensor(a!)",
        doc="Swaps two dims of the tensor itself.",
        composite=lambda self, first, second: transpose_.call(self, first, second),
        function=False,
    )
METHODS: dict[str, Any] = {"set_": set_}
