"""One vmap at work: each op is done for one example after another, and what PyTorch refuses is refused."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from stridescope.engine.autograd.function import Function as CustomFunction
from stridescope.engine.autograd.function import applied
from stridescope.engine.autograd.lockstep import Lockstep, batch_of, show
from stridescope.engine.autograd.modes import transforms
from stridescope.engine.dispatch.op import Op
from stridescope.engine.dispatch.recorded import Interceptors
from stridescope.engine.dtype import bool_
from stridescope.engine.events import journal
from stridescope.engine.ops.generator import default_generator
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.ops.to_python import before_reading
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._trees import flatten, spread

NEEDS_CONTEXT = (
    "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override "
    "the setup_context staticmethod. For more details, please see "
    "https://pytorch.org/docs/main/notes/extending.func.html"
)
_RANDOM = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
    "randomness flags on vmap or perform the randomness operation out of vmap"
)
_SAME = (
    "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with functorch"
)
_DIFFERENT = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. "
    "If this is necessary for your usage, please file an issue with functorch."
)
_COPY = (
    "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args "
    "that has more elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped "
    "over in a vmap. Please try to use out-of-place operators instead of inplace arithmetic. If said operator is being "
    "called inside the PyTorch framework, please file a bug report instead."
)
_NORM = (
    "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in place, "
    "were not batched.\nIf you are using a module and do not need eval mode, please set `track_running_stats` to be "
    "False.If you are using a prebuilt module and do not need eval mode, please see the functorch website for "
    "resources on patching your module to work with vmap"
)
# Random ops whose distribution is given by a tensor.
_BY_TENSOR = frozenset(("bernoulli", "multinomial", "normal", "poisson", "binomial"))
_PLEASE = "Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature."
# What has no rule: by the op's name.
_REFUSED = {
    **{
        name: "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
        f"aten::{name}. {_PLEASE}"
        for name in ("nonzero", "unique_dim", "_unique2")
    },
    "unique_consecutive": "vmap: We do not support batching operators that can output dynamic shape. Attempted to "
    f"vmap over aten::unique_consecutive. {_PLEASE}",
    "masked_select": "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this "
    f"because for each batch this would return a differently shaped Tensor. {_PLEASE}",
    "as_strided_scatter": "Error: aten::as_strided_scatter requires special handling, and does not yet have a batching "
    "rule. Feel free to file a github issue!",
    "histogramdd": "Batching rule not implemented for aten::histogramdd. We could not generate a fallback.",
    "equal": "Batching rule not implemented for aten::equal. We could not generate a fallback.",
    "allclose": f"vmap over torch.allclose isn't supported yet. {_PLEASE}",
    "rrelu": "vmap: we do not yet support aten::rrelu. Please file an issue",
}


class VmapInfo(NamedTuple):
    """What a custom function's ``vmap`` is told."""

    batch_size: int
    randomness: str


def _is_random(op: Op) -> bool:
    return op.name.startswith("rand") or any(a.type.startswith("Generator") for a in op.schema.arguments)


def _draws(op: Op, args: Sequence[Any]) -> bool:
    """Whether a call makes random numbers."""
    if "dropout" in op.name:
        named = dict(zip((a.name for a in op.schema.arguments), args, strict=True))
        return bool(named.get("train", True) and named.get("p", True))
    return _is_random(op)


class Level(Lockstep):
    """One vmap; ``info`` is what custom functions are told, ``count`` at least one, for nothing has no shapes."""

    def __init__(self, info: VmapInfo) -> None:
        super().__init__(max(info.batch_size, 1))
        self.info = info

    def watch(self, op: Op, call: Callable[..., Any], *args: Any) -> Any:
        """Stand in the place of every op."""
        if self.busy:
            return self.follow(call(*args), args)
        depends = self.depends(args)
        if _draws(op, args):
            return self._random(op, call, args, depends)
        if not depends:
            return call(*args)
        self._refuse(op, args)
        if op.schema.writes:
            return self._written(op, args)
        if op.name in ("as_strided", "as_strided_copy") and args[3] is not None:
            return self._restrided(op, args)
        return self.lifted(op.call, *args)

    def _restrided(self, op: Op, args: tuple[Any, ...]) -> Any:
        """An offset into memory is meant for the first example; the others' memory begins elsewhere."""
        moved = args[3] - args[0].offset
        return self.lifted(lambda own: op.call(own, args[1], args[2], own.offset + moved), args[0])

    def _refuse(self, op: Op, args: tuple[Any, ...]) -> None:
        if op.name == "index" and any(isinstance(i, Tensor) and i.dtype is bool_ and self.depends(i) for i in args[1]):
            raise RuntimeError(
                "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over "
                "indexing with a boolean mask."
            )
        if op.name in _REFUSED and (op.name != "masked_select" or self.depends(args[1])):
            raise RuntimeError(_REFUSED[op.name])
        if op.name in ("batch_norm", "instance_norm", "native_batch_norm", "_native_batch_norm_legit"):
            named = dict(zip((a.name for a in op.schema.arguments), args, strict=True))
            statistics = [named["running_mean"], named["running_var"]]
            training = named.get("training", named.get("use_input_stats"))
            if training and any(one is not None and not self.depends(one) for one in statistics):
                raise RuntimeError(_NORM)

    def _written(self, op: Op, args: tuple[Any, ...]) -> Any:
        """Write into each example of the target."""
        target = args[0]
        if not self.depends(target):
            if op.name in ("copy_", "index_put_"):
                raise RuntimeError(_COPY)
            own = list(target.shape)
            raise RuntimeError(f"output with shape {own} doesn't match the broadcast shape {[self.count, *own]}")
        self.lifted(op.call, *args)
        show(target)
        return target

    # ---- random numbers ------------------------------------------------------------------------------------------

    def _random(self, op: Op, call: Callable[..., Any], args: tuple[Any, ...], depends: bool) -> Any:
        if op.name in _REFUSED and depends:
            raise RuntimeError(_REFUSED[op.name])
        if self.info.randomness == "error":
            raise RuntimeError(_RANDOM)
        if self.info.randomness == "same":
            return self._same(op, args) if depends else call(*args)
        if op.composite is not None:
            return call(*args) if depends else call(*self._spread(args))
        if op.schema.writes and not self.depends(args[0]):
            raise RuntimeError(_DIFFERENT)
        return self._different(op, args)

    def _same(self, op: Op, args: tuple[Any, ...]) -> Any:
        """Each example has the numbers that one alone would have."""
        if op.name in _BY_TENSOR:
            raise RuntimeError(_SAME)
        state = default_generator.get_state()

        def again(*own: Any) -> Any:
            default_generator.set_state(state)
            return op.call(*own)

        result = self.lifted(again, *args)
        if op.schema.writes:
            show(args[0])
            return args[0]
        return result

    def _spread(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The first tensor, which is the same for all, as a stand-in."""
        place = next((i for i, value in enumerate(args) if isinstance(value, Tensor)), None)
        if place is None:
            return args
        examples = self.aside(lambda: [args[place].view_as(args[place]) for _ in range(self.count)])
        return (*args[:place], self.stand_in(examples), *args[place + 1 :])

    def _different(self, op: Op, args: tuple[Any, ...]) -> Any:
        """Draw for all examples at once, in the order of memory."""
        sizes = [i for i, argument in enumerate(op.schema.arguments) if argument.name == "size"]
        if sizes:
            wide = list(args)
            size = args[sizes[0]]
            wide[sizes[0]] = [self.count, *(size if isinstance(size, (list, tuple)) else [size])]
            whole = self.aside(lambda: op.call(*wide))
        elif op.name == "randperm" or not any(isinstance(a, Tensor) for a in args):
            return self.stand_in(self.aside(lambda: [op.call(*args) for _ in range(self.count)]))
        else:
            whole = self.aside(lambda: op.call(*self._wholes(args)))
        results = self.aside(lambda: [whole.select(0, number) for number in range(self.count)])
        if not op.schema.writes:
            return self.stand_in(results)
        self.lifted(op_call("copy_"), args[0], self.stand_in(results))
        show(args[0])
        return args[0]

    def _wholes(self, args: tuple[Any, ...]) -> list[Any]:
        """The arguments with the examples' dim in front of every tensor."""
        return [self._in_front(a) if isinstance(a, Tensor) else a for a in args]

    def _in_front(self, tensor: Any) -> Any:
        if not self.depends(tensor):
            return tensor.unsqueeze(0).expand(self.count, *tensor.shape).contiguous()
        return self._stacked(tensor)

    def _stacked(self, tensor: Tensor) -> Any:
        batch = batch_of(tensor)
        assert batch is not None
        return op_call("stack")(batch.examples)

    # ---- numbers for Python --------------------------------------------------------------------------------------

    def refuse_reading(self, tensor: Tensor, truth: bool) -> None:
        """Refuse that a number is made of what depends on the example."""
        if not self.holds(tensor):
            return
        if truth:
            raise RuntimeError(
                "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't "
                "support that yet, please file an issue at https://github.com/pytorch/pytorch/issues ."
            )
        raise RuntimeError(
            "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a "
            "Tensor, please try to rewrite what you're doing with other operations. If error is occurring somewhere "
            "inside PyTorch internals, please file a bug report."
        )

    # ---- custom functions ----------------------------------------------------------------------------------------

    def apply(self, cls: type[CustomFunction], args: tuple[Any, ...], kwargs: dict[str, Any], split: bool) -> Any:
        """Apply a custom function: by its own rule, or to each example by itself."""
        place = transforms.index(self.apply)
        outer = next((each for each in reversed(transforms[:place]) if hasattr(each, "__self__")), applied)
        if self.busy:
            return outer(cls, args, kwargs, split)
        if not split:
            raise RuntimeError(NEEDS_CONTEXT)
        if not self.depends((args, kwargs)):
            return outer(cls, args, kwargs, split)
        if cls.generate_vmap_rule:
            return self.lifted(lambda own, named: outer(cls, own, named, split), args, kwargs)
        if cls.vmap is CustomFunction.vmap:
            raise RuntimeError(
                f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and "
                "implement the vmap staticmethod or set generate_vmap_rule=True. For more details, please see "
                "https://pytorch.org/docs/main/notes/extending.func.html"
            )
        return self._by_rule(cls, args)

    def _by_rule(self, cls: type[CustomFunction], args: tuple[Any, ...]) -> Any:
        wholes = [self.whole(a) if isinstance(a, Tensor) and self.depends(a) else (a, None) for a in args]
        dims = tuple(dim for _, dim in wholes)
        output, out_dims = self.aside(lambda: cls.vmap(self.info, dims, *(whole for whole, _ in wholes)))
        leaves, unflatten = flatten(output)
        places = spread(out_dims, output) or []
        return unflatten([
            one if dim is None or not isinstance(one, Tensor) else self.unstacked(one, dim % one.dim())
            for one, dim in zip(leaves, places, strict=True)
        ])  # fmt: skip

    def whole(self, tensor: Tensor) -> tuple[Any, int]:
        """All examples as one tensor, and the dim that counts them."""
        batch = batch_of(tensor)
        assert batch is not None
        return batch.origin or (self.aside(lambda: self._stacked(tensor)), 0)

    def unstacked(self, tensor: Tensor, dim: int) -> Tensor:
        """A stand-in for the slices of a tensor."""
        examples = self.aside(lambda: [tensor.select(dim, number) for number in range(self.count)])
        return self.stand_in(examples, (tensor, dim))


@contextlib.contextmanager
def running(level: Level) -> Iterator[None]:
    """The time in which a level stands in the place of everything."""
    refuse, apply = level.refuse_reading, level.apply
    Interceptors.below.append(level.watch)
    before_reading.append(refuse)
    transforms.append(apply)
    Lockstep.levels.append(level)
    level.number = len(transforms)
    journal.require_full(1)
    try:
        yield
    finally:
        journal.require_full(-1)
        Lockstep.levels.remove(level)
        transforms.remove(apply)
        before_reading.remove(refuse)
        Interceptors.below.pop()
