"""``torch.nn.utils.prune``: parameters multiplied by masks of zeros and ones.

A pruned parameter ``name`` is kept as ``name_orig``, its mask as the buffer ``name_mask``; a pre-hook of the module
sets ``name`` to their product before every call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

from stridescope.engine import torch
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._in_each import in_each, write_out
from stridescope.engine.torch.nn.modules.module import Module
from stridescope.engine.torch.nn.utils.convert_parameters import parameters_to_vector


class BasePruningMethod(ABC):
    """A way to choose what is pruned: a subclass defines ``compute_mask`` and ``PRUNING_TYPE``.

    ``PRUNING_TYPE`` says what a second pruning of the same parameter sees: ``unstructured`` the elements that are
    left, ``structured`` the slices that are left, ``global`` all.
    """

    PRUNING_TYPE: ClassVar[str] = "unstructured"
    _tensor_name: str

    @abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask for scores ``t``, starting from ``default_mask``."""

    def __call__(self, module: Module, inputs: Any) -> None:
        """Before every call of the module: multiply anew."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    def apply_mask(self, module: Module) -> Any:
        """The parameter times its mask."""
        original = getattr(module, f"{self._tensor_name}_orig")
        return getattr(module, f"{self._tensor_name}_mask").to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module: Module, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any) -> Any:
        """Prune a module's parameter; pruned before, it is pruned further. Returns the method on the hook."""
        method = _joined(module, name, cls(*args, **kwargs))
        original = getattr(module, name)
        scores = _scores(importance_scores, original, f"parameter {name} of {module}")
        again = isinstance(method, PruningContainer)
        if again:
            start = getattr(module, f"{name}_mask").detach().clone(memory_format=torch.contiguous_format)
        else:
            start = torch.ones_like(original)
        mask = method.compute_mask(scores, default_mask=start)
        if not again:
            module.register_parameter(f"{name}_orig", original)
            del module._parameters[name]
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """A tensor times the mask that the method computes for it."""
        scores = _scores(importance_scores, t, "tensor t")
        return t * self.compute_mask(scores, torch.ones_like(t) if default_mask is None else default_mask)

    def remove(self, module: Module) -> None:
        """Make the pruning permanent: the parameter holds the product."""
        name = self._tensor_name
        product = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original: Any = module._parameters.pop(f"{name}_orig")
        original.data = product.data
        del module._buffers[f"{name}_mask"]
        setattr(module, name, original)


def _scores(given: Any, like: Any, label: str) -> Any:
    if given is None:
        return like
    if given.shape != like.shape:
        raise AssertionError(
            f"importance_scores should have the same shape as {label}, got {given.shape} vs {like.shape}"
        )
    return given


def _joined(module: Any, name: str, method: BasePruningMethod) -> BasePruningMethod:
    """The method itself, or with the one that pruned this parameter before; that one's hook is taken away."""
    method._tensor_name = name
    keys = [key for key, hook in module._forward_pre_hooks.items() if _prunes(hook, name)]
    if len(keys) > 1:
        raise AssertionError(
            f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a PruningContainer."
        )
    if not keys:
        return method
    before = module._forward_pre_hooks.pop(keys[0])
    container = before if isinstance(before, PruningContainer) else PruningContainer(before)
    container.add_pruning_method(method)
    return container


def _prunes(hook: Any, name: str) -> bool:
    return isinstance(hook, BasePruningMethod) and hook._tensor_name == name


class PruningContainer(BasePruningMethod):
    """Several prunings of one parameter; only the last one is still to be computed."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Append one; raises TypeError for what is none, ValueError for another parameter's."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer "
                f"{self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The last method's mask of what the others left, within theirs."""
        method = self._pruning_methods[-1]
        left = _left(method, t, default_mask)
        mask = default_mask.to(dtype=t.dtype)
        mask[left] = method.compute_mask(t[left], default_mask=default_mask[left]).to(dtype=mask.dtype)
        return mask


def _left(method: Any, t: Any, mask: Any) -> Any:
    """The index of what a method may still choose from."""
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    if method.PRUNING_TYPE == "global":
        return (slice(None),) * t.dim()
    if method.PRUNING_TYPE != "structured":
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
    if not hasattr(method, "dim"):
        raise AttributeError('Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.')
    dim = method.dim + t.dim() if method.dim < 0 else method.dim
    if dim < 0:
        raise IndexError(f"Index is out of bounds for tensor with dimensions {t.dim()}")
    kept = mask.sum(dim=[d for d in range(t.dim()) if d != dim]) != 0
    return _slices(t, dim, kept)


def _slices(t: Any, dim: int, chosen: Any) -> tuple[Any, ...]:
    index: list[Any] = [slice(None)] * t.dim()
    index[dim] = chosen
    return tuple(index)


class Identity(BasePruningMethod):
    """Prunes nothing, but makes the mask."""

    @classmethod
    def apply(cls, module: Module, name: str) -> Any:  # type: ignore[override]
        """Make the mask of a parameter; returns the method on the hook."""
        return super().apply(module, name)

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask that is there."""
        return default_mask


class _Amount(BasePruningMethod):
    """Prunes a number of elements, or a share of them."""

    @in_each
    def __init__(self, amount: Any) -> None:
        self.amount = amount
        if not isinstance(self.amount, Real):
            raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
        if amount < 0 or (not isinstance(amount, Integral) and amount > 1.0):
            raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")

    def _count(self, size: int) -> int:
        """How many of ``size`` are pruned; raises ValueError when there aren't so many."""
        if not isinstance(self.amount, Integral):
            return int(round(self.amount * size))
        if int(self.amount) > size:
            raise ValueError(f"amount={self.amount} should be smaller than the number of parameters to prune={size}")
        return int(self.amount)


class _Unstructured(_Amount):
    """Prunes single elements."""

    def _lowest(self, t: Any, count: int) -> Any:
        raise NotImplementedError

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Zeros at the chosen elements."""
        count = self._count(t.nelement())
        mask = default_mask.clone(memory_format=torch.contiguous_format)
        if count:
            mask.view(-1)[self._lowest(t, count)] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes elements by chance."""

    @classmethod
    def apply(cls, module: Module, name: str, amount: Any) -> Any:  # type: ignore[override]
        """Prune elements of a parameter by chance; returns the method on the hook."""
        return super().apply(module, name, amount=amount)

    def _lowest(self, t: Any, count: int) -> Any:
        return torch.topk(torch.rand_like(t).view(-1), k=count).indices


class L1Unstructured(_Unstructured):
    """Prunes the elements nearest to zero."""

    @classmethod
    def apply(cls, module: Module, name: str, amount: Any, importance_scores: Any = None) -> Any:  # type: ignore[override]
        """Prune the elements nearest to zero; returns the method on the hook."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)

    def _lowest(self, t: Any, count: int) -> Any:
        return torch.topk(torch.abs(t).view(-1), k=count, largest=False).indices


class _Structured(_Amount):
    """Prunes whole slices along ``dim``."""

    PRUNING_TYPE = "structured"
    dim: int

    def _kept(self, t: Any, count: int) -> Any:
        raise NotImplementedError

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Zeros in the chosen slices."""
        if t.dim() <= 1:
            raise ValueError(
                f"Structured pruning can only be applied to multidimensional tensors. Found tensor of shape {t.shape} "
                f"with {t.dim()} dims"
            )
        if self.dim >= t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        count = self._count(t.shape[self.dim])
        if not count:
            return default_mask
        mask = torch.zeros_like(t)
        mask[_slices(t, self.dim, self._kept(t, count))] = 1
        mask *= default_mask.to(dtype=mask.dtype)
        return mask


class RandomStructured(_Structured):
    """Prunes slices by chance."""

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    @classmethod
    def apply(cls, module: Module, name: str, amount: Any, dim: int = -1) -> Any:  # type: ignore[override]
        """Prune slices of a parameter by chance; returns the method on the hook."""
        return super().apply(module, name, amount=amount, dim=dim)

    def _kept(self, t: Any, count: int) -> Any:
        drawn = torch.rand(t.shape[self.dim])
        return drawn > torch.kthvalue(drawn, k=count).values


class LnStructured(_Structured):
    """Prunes the slices with the smallest norms of order ``n``."""

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.n, self.dim = n, dim

    @classmethod
    def apply(cls, module: Module, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None) -> Any:  # type: ignore[override]
        """Prune the slices with the smallest norms; returns the method on the hook."""
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)

    def _kept(self, t: Any, count: int) -> Any:
        others = list(range(t.dim()))
        del others[self.dim]
        norms = torch.norm(t, p=self.n, dim=others)
        return torch.topk(norms, k=t.shape[self.dim] - count, largest=True).indices


class CustomFromMask(BasePruningMethod):
    """Prunes what a given mask says."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    @classmethod
    def apply(cls, module: Module, name: str, mask: Any) -> Any:  # type: ignore[override]
        """Prune what a mask says; returns the method on the hook."""
        return super().apply(module, name, mask=mask)

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The given mask, within the one that is there."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def identity(module: Any, name: str) -> Any:
    """Make the mask of a parameter without pruning anything."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prune elements by chance: a number of them, or a share."""
    RandomUnstructured.apply(module, name, amount=amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Prune the elements nearest to zero, or with the smallest scores."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prune slices along ``dim`` by chance."""
    RandomStructured.apply(module, name, amount=amount, dim=dim)
    return module


def ln_structured(module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None) -> Any:
    """Prune the slices along ``dim`` with the smallest norms of order ``n``."""
    LnStructured.apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """Prune what the mask says."""
    CustomFromMask.apply(module, name, mask=mask)
    return module


def global_unstructured(parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any) -> None:
    """Prune elements of several (module, name) as if they were one; raises TypeError for bad arguments."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs = [(module, name, getattr(module, name)) for module, name in parameters]
    together = parameters_to_vector([scores.get((module, name), value) for module, name, value in pairs])
    masks = [getattr(module, f"{name}_mask", torch.ones_like(value)) for module, name, value in pairs]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    method._tensor_name = "all"
    final: Any = PruningContainer(method).compute_mask(together, parameters_to_vector(masks))
    for (module, name, value), mask in zip(pairs, final.split([mask.numel() for mask in masks]), strict=True):
        custom_from_mask(module, name, mask=mask.view_as(value))


def remove(module: Any, name: str) -> Any:
    """Make a parameter's pruning permanent; raises ValueError when it is not pruned."""
    for key, hook in module._forward_pre_hooks.items():
        if _prunes(hook, name):
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Any) -> bool:
    """Whether a parameter of the module, or of one below it, is pruned."""
    return any(
        isinstance(hook, BasePruningMethod) for each in module.modules() for hook in each._forward_pre_hooks.values()
    )


for _kind in (
    BasePruningMethod, PruningContainer, Identity, RandomUnstructured, L1Unstructured, RandomStructured, LnStructured,
    CustomFromMask,
):  # fmt: skip
    _kind.__module__ = "torch.nn.utils.prune"
    write_out(_kind)
