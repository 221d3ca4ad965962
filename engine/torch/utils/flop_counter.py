"""``torch.utils.flop_counter``: the floating point operations of matrix products and convolutions, module by module.

A multiplication and the addition that follows count as two. Other ops count nothing.
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Self

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch import ops
from stridescope.engine.torch._not_yet import missing_from
from stridescope.engine.torch.utils._python_dispatch import TorchDispatchMode
from stridescope.engine.torch.utils._pytree import tree_map
from stridescope.engine.torch.utils.module_tracker import ROOT, ModuleTracker

Shape = Sequence[int]
_SUFFIXES = ("", "K", "M", "B", "T")


def mm_flop(a_shape: Shape, b_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Of a product of two matrices."""
    return 2 * a_shape[0] * a_shape[1] * b_shape[1]


def addmm_flop(self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any) -> int:
    """Of a product that is added to something: as of the product alone."""
    return mm_flop(a_shape, b_shape)


def bmm_flop(a_shape: Shape, b_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Of a batch of products."""
    return a_shape[0] * mm_flop(a_shape[1:], b_shape[1:])


def baddbmm_flop(self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any) -> int:
    """Of a batch of products that are added to something."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape: Shape, w_shape: Shape, out_shape: Shape, transposed: bool = False) -> int:
    """Of a convolution: a product for every weight at every place (of the input, when it is transposed)."""
    places = (x_shape if transposed else out_shape)[2:]
    return 2 * math.prod(places) * math.prod(w_shape) * x_shape[0]


def conv_flop(
    x_shape: Shape, w_shape: Shape, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, *args: Any,
    out_shape: Any = None, **kwargs: Any,
) -> int:  # fmt: skip
    """Of a convolution."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


def conv_backward_flop(
    grad_shape: Shape, x_shape: Shape, w_shape: Shape, bias: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int, output_mask: Sequence[bool], out_shape: Any,
) -> int:  # fmt: skip
    """Of a convolution's gradients: one more convolution for each that is wanted."""
    wanted = bool(output_mask[0]) + bool(output_mask[1])
    return wanted * conv_flop_count(x_shape, w_shape, grad_shape, transposed)


def shape_wrapper(formula: Callable[..., int]) -> Callable[..., int]:
    """The formula with shapes in the place of tensors."""

    def of_tensors(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out_shape = tree_map(_shape, (args, kwargs, out_val))
        return formula(*args, out_shape=out_shape, **kwargs)

    return of_tensors


def _shape(value: Any) -> Any:
    return value.shape if isinstance(value, Tensor) else value


flop_registry: dict[Any, Callable[..., int]] = {
    ops.aten.mm: shape_wrapper(mm_flop),
    ops.aten.addmm: shape_wrapper(addmm_flop),
    ops.aten.bmm: shape_wrapper(bmm_flop),
    ops.aten.baddbmm: shape_wrapper(baddbmm_flop),
    ops.aten.convolution: shape_wrapper(conv_flop),
    ops.aten.convolution_backward: shape_wrapper(conv_backward_flop),
}


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """A decorator: this formula counts these ops, from the shapes of their arguments and ``out_shape``.

    With ``get_raw`` it gets the tensors themselves, and ``out_val``.
    """

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        kept = formula if get_raw else shape_wrapper(formula)
        for target in targets if isinstance(targets, (list, tuple)) else (targets,):
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = kept
        return formula

    return register


def get_suffix_str(number: float) -> str:
    """The unit in which a number is read best: "", K, M, B or T; those with one digit only are passed over."""
    return _SUFFIXES[max(0, min(len(_SUFFIXES) - 1, (len(str(number)) - 2) // 3))]


def convert_num_with_suffix(number: float, suffix: str) -> str:
    """A number in units of K, M, B or T."""
    return f"{number / 1000 ** _SUFFIXES.index(suffix):.3f}{suffix}"


def convert_to_percent_str(num: float, denom: float) -> str:
    """A share in percent."""
    return f"{num / denom:.2%}" if denom else "0%"


class FlopCounterMode:
    """Inside the block, counts the floating point operations of every module.

    Args:
        mods: no longer needed. depth: how many levels the table shows. display: whether to print it at the end.
        custom_mapping: formulas of more ops.
    """

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: dict[Any, Any] | None = None
    ) -> None:
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.depth, self.display = depth, display
        self.flop_counts: defaultdict[str, defaultdict[Any, int]] = defaultdict(lambda: defaultdict(int))
        custom = {
            op: f if getattr(f, "_get_raw", False) else shape_wrapper(f) for op, f in (custom_mapping or {}).items()
        }
        self.flop_registry = {**flop_registry, **custom}
        self.mod_tracker = ModuleTracker()
        self._mode = _Counting(self)

    def get_total_flops(self) -> int:
        """All operations together."""
        return sum(self.flop_counts[ROOT].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """The operations by module, then by op."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def __enter__(self) -> Self:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self._mode.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._mode.__exit__(*exc)
        self.mod_tracker.__exit__(*exc)
        if self.display:
            print(self.get_table(self.depth))

    def counted(self, op: Any, out: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Add what one call of an op takes to every module at work."""
        formula = self.flop_registry.get(op)
        if formula is None:
            return
        flops = formula(*args, **kwargs, out_val=out)
        for name in self.mod_tracker.parents:
            self.flop_counts[name][op] += flops

    def get_table(self, depth: int | None = None) -> str:
        """The counts as a table, to ``depth`` levels of modules."""
        depth = 999999 if depth is None else depth
        total = self.get_total_flops()
        unit = get_suffix_str(total)
        rows = [("Module", "FLOP", "% Total")]
        outermost = [name for name in sorted(self.flop_counts) if name != ROOT and name.count(".") < depth]
        if not outermost or sum(sum(self.flop_counts[n].values()) for n in outermost if "." not in n) != total:
            rows += self._rows(ROOT, 0, unit, total)
        for name in outermost:
            rows += self._rows(name, name.count(".") + (len(rows) > 1 and rows[1][0] == ROOT), unit, total)
        return _table(rows)

    def _rows(self, name: str, level: int, unit: str, total: int) -> list[tuple[str, str, str]]:
        counts, indent = self.flop_counts[name], " " * level
        whole = sum(counts.values())
        lines = [(indent + name, convert_num_with_suffix(whole, unit), convert_to_percent_str(whole, total))]
        for op, flops in counts.items():
            share = convert_to_percent_str(flops, total)
            lines.append((f"{indent} - {op}", convert_num_with_suffix(flops, unit), share))
        return lines


def _table(rows: Sequence[tuple[str, str, str]]) -> str:
    """Columns, the first one ranged left, the others right, under a rule."""
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ["  ".join((row[0].ljust(widths[0]), row[1].rjust(widths[1]), row[2].rjust(widths[2]))) for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)


class _Counting(TorchDispatchMode):
    """Sees every op for a :class:`FlopCounterMode`."""

    def __init__(self, counter: FlopCounterMode) -> None:
        self._counter = counter

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        self._counter.counted(func.overloadpacket, out, args, kwargs)
        return out


__getattr__ = missing_from("torch.utils.flop_counter")

__all__ = ["FlopCounterMode", "register_flop_formula"]
