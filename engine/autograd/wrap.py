"""What a custom function's results become: outputs of its node, views, written inputs, or plain tensors."""

from __future__ import annotations

from typing import Any

from stridescope.engine.announce import tensor_id
from stridescope.engine.autograd.edges import info_of
from stridescope.engine.autograd.history import check_inplace, rebase_history
from stridescope.engine.autograd.leaf import detach_
from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.autograd.node import Node, meta_of, node_id
from stridescope.engine.events import GradFnSet, journal
from stridescope.engine.tensor import Tensor, alias, bump_version
from stridescope.engine.warn import warn


class Outputs:
    """The results of one call of ``forward``.

    Args:
        node: the call's node, which is its ctx too.
        args: what ``forward`` was given.
        raw: what it returned, as a tuple.
        executable: whether gradients will flow.
        split: whether the function has a ``setup_context``.
    """

    def __init__(self, node: Any, args: tuple[Any, ...], raw: tuple[Any, ...], executable: bool, split: bool) -> None:
        self.node, self.raw, self.executable = node, raw, executable
        self.inputs = {id(a) for a in args if isinstance(a, Tensor)}
        self.dirty = self._dirty(node.dirty_tensors or ())
        self.fixed = self._fixed(node.non_differentiable or ())
        saved = [*(node.to_save or ()), *(node.saved_for_forward or ())] if split else []
        self.saved = {id(t) for t in saved if isinstance(t, Tensor)}

    @staticmethod
    def _dirty(tensors: tuple[Any, ...]) -> dict[int, Tensor]:
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise RuntimeError("mark_dirty can only accept variables, but argument ")
            bump_version(tensor)
        return {id(tensor): tensor for tensor in tensors}

    @staticmethod
    def _fixed(tensors: tuple[Any, ...]) -> set[int]:
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise RuntimeError("mark_non_differentiable only accepts variable arguments, but got ")
        return {id(tensor) for tensor in tensors}

    def wrapped(self) -> tuple[Any, ...]:
        """The results as the caller gets them."""
        outputs = tuple(self._one(out) for out in self.raw)
        tensors = [out for out in outputs if isinstance(out, Tensor)]
        if sum(out._node is self.node for out in tensors) > 1:
            for out in tensors:
                if out._base_tensor is not None:
                    info_of(out).kind = "multi"
        returned = {id(out) for out in tensors}
        if any(key not in returned for key in self.dirty):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that "
                "are modified inplace must all be outputs of the Function."
            )
        return outputs

    def _one(self, out: Any) -> Any:
        if not isinstance(out, Tensor):
            self._note(None)
            return out
        is_input, is_dirty = id(out) in self.inputs, id(out) in self.dirty
        if not (self.executable and id(out) not in self.fixed and out.dtype.category >= 2):
            self._note(out, differentiable=False)
            out = self._plain(out, is_input, is_dirty)
            if not is_dirty and out._base_tensor is not None:
                info_of(out).kind = "custom"
            return out
        if is_dirty:
            return self._written(out, is_input)
        if is_input:
            out = self._returned_as_is(out)
        self._adopt(out)
        if out._base_tensor is not None:
            info_of(out).kind = "custom"
        return out

    def _note(self, out: Tensor | None, differentiable: bool = True) -> None:
        """Tell the node what this output looks like."""
        if not self.executable:
            return
        meta = None if out is None else meta_of(out)
        self.node._outputs.append(meta if differentiable else None)
        self.node._shapes = (*self.node._shapes, meta)

    def _plain(self, out: Tensor, is_input: bool, is_dirty: bool) -> Tensor:
        if not out._requires_grad:
            return _view_as_self(out) if is_input and not is_dirty else out
        if is_input:
            return alias(out)
        if out._base_tensor is None:
            detach_(out)
        return out

    def _written(self, out: Tensor, is_input: bool) -> Tensor:
        if out._node is None and out._requires_grad:
            raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
        if not is_input:
            warn(
                "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated "
                "should be passed to ctx.mark_dirty(). "
            )
        if len(self.raw) > 1 and out._base_tensor is not None:
            raise RuntimeError(
                "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot "
                "return more than one Tensor. This is not supported by the current autograd engine. You should either "
                "make sure the input is not a view (using .clone() for example) or make your Function only return one "
                "Tensor (potentially splitting it into two Functions: one doing the inplace that returns a single "
                "Tensor and a second one that does the other operations). You can ask on the forum "
                "https://discuss.pytorch.org/ if you need help to do this change."
            )
        out._grad = None  # what retain_grad kept was that of the tensor before the write
        check_inplace(out, True)
        self.node._shapes = (*self.node._shapes, meta_of(out))
        rebase_history(out, self.node)
        return out

    def _returned_as_is(self, out: Tensor) -> Tensor:
        if id(out) in self.saved:
            raise RuntimeError(
                "An input that has been returned as-is as output is being saved for backward. This is not supported if "
                "you override setup_context. You should return and save a view of the input instead, e.g. with "
                "x.view_as(x) or setup ctx inside the forward function itself."
            )
        return _view_as_self(out)

    def _adopt(self, out: Tensor) -> None:
        node: Node = self.node
        out._output_nr = len(node._outputs)
        self._note(out)
        out._node, out._requires_grad = node, True
        if out._base_tensor is not None:
            info = info_of(out)
            info.version, info.inherited = out.version_counter.value, False
        if (emit := journal.emit) is not None:
            emit((GradFnSet.code, tensor_id(out), node_id(node), out._output_nr))


def _view_as_self(tensor: Tensor) -> Tensor:
    """A view of the whole tensor, made as in no_grad."""
    enabled, grad_mode.enabled = grad_mode.enabled, False
    try:
        return tensor.view_as(tensor)  # type: ignore[no-any-return]
    finally:
        grad_mode.enabled = enabled
