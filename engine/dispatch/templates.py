"""The source from which an op's callable is built: see :mod:`stridescope.engine.dispatch.call`."""

from __future__ import annotations

import textwrap

from stridescope.engine.dispatch.schema import Argument, Schema

# The path of a call is written out in one function: between operators and kernels every Python call shows. The core is
# the part that the recorded path runs as well, between what it announces.
CORE = """
def {name}({signature}):
#body
"""
TEMPLATE = """
def {name}({signature}):
    if journal.full:
        return stage_full(op, guarded, ({names}))
    try:
#body
    except Exception:
        stage_failed(op, ({names}))
        raise
"""
COMPOSITE_CALL = """
def {name}({signature}):
    if journal.full:
        return stage_full(op, core, ({names}))
    return core({names})
"""
# The same with :func:`recorded` written out for the most frequent kinds of arguments.
ANNOUNCED_COMPOSITE = """
def {name}({signature}):
    if journal.full:
        if not journal.plain or not ({usual}):
            return stage_full(op, core, ({names}))
        journal.bundle((begun, {label}, {pattern}, journal.where(), {written}))
        try:
            out = core({names})
        except Exception as error:
            stage_refused({label}, error)
            raise
        ended(out, {label})
        return out
    return core({names})
"""
# The same for ops with a kernel.
ANNOUNCED = """
def {name}({signature}):
    if journal.full:
#quick
        if not journal.plain or not ({usual}):
            return stage_full(op, guarded, ({names}))
        journal.bundle((opened, {label}, {pattern}, journal.where(), {written}))
        try:
            out = core({names})
        except Exception as error:
            stage_refused(op, ({names}), error)
            raise
        ended(out, {label})
        return out
    try:
#body
    except Exception:
        stage_failed(op, ({names}))
        raise
"""
KERNEL = """
    out = run({names})
    if ({wants}) and grad_mode.enabled:
        stage_track({names}out)
    return out
"""
# Pointwise ops of like operands on the CPU: NumPy's result is PyTorch's when its strides are those of the operands.
UNARY_RESULT = """
    kind = self.dtype
    r = None
    if kind in quick and self._plain:
        a = self._array
        r = ufunc(a)
        if r.__class__ is not ndarray:
            r = asarray(r)
        if 1 in a.shape and r.flags.c_contiguous:
            r = canonical(r)
"""
# Whether NumPy's result is laid out as PyTorch's; empty results have strides of their own.
FITS_SAME = "r.strides == a.strides and r.size"
FITS = "(r.strides == a.strides or in_order(r, a)) and r.dtype is a.dtype and r.size"
FITS_OTHER = "r.flags.c_contiguous and orderly(a) and r.dtype is gives.np and 1 not in r.shape and r.size"
BINARY_RESULT = """
    kind = self.dtype
    r = None
    if kind in quick and self._plain{plain_rest}:
        a = self._array
        if isinstance({second}, Tensor):
            if {second}.dtype is kind and {second}._plain:
                b = {second}._array
                if a.strides == b.strides:
                    try:
                        r = ufunc(a, b)
                    except ValueError:
                        pass
                    else:
                        if 1 in a.shape and r.flags.c_contiguous:
                            r = canonical(r)
                elif by_rule and a.size and b.size:
                    try:
                        a = r = settled(ufunc(a, b), a, b)
                    except ValueError:
                        pass
        elif {second}.__class__ in numbers[kind]:
            r = ufunc(a, {second})
        if r is not None and r.__class__ is not ndarray:
            r = asarray(r)
"""
MADE = """
    if r is not None and {fits}:
        out = new(Tensor)
        out._array = r
        out.dtype = {gives}
        out._storage = out._version_counter = out._node = out._base_tensor = out._promised = None
        out._requires_grad = False
        out._plain = True
        out._id = 0
    else:
        out = run({names})
    if ({wants}) and grad_mode.enabled:
        stage_track({names}out)
    return out
"""
# The same while something records: a small result on its own storage is told with its call, in one row. Whatever is
# not of this kind, a failure too, is left to the longer way. Names of its own begin with an underscore.
TOLD = """
        if (_tell := journal.quick) is not None and self._array.nbytes <= journal.keep_values and not (
            ({wants}) and grad_mode.enabled
        ):
            try:
#result
            except Exception:
                r = None
            _bytes = 0 if r is None else r.nbytes
            if 0 < _bytes <= journal.keep_values and {fits}:
                _layout = {gives}.row_major.get(r.shape)
                if _layout is not None and _layout[1] == r.strides:
                    {held} = {written}
                    out = new(Tensor)
                    out._array = r
                    out.dtype = {gives}
                    out._storage = out._version_counter = out._node = out._base_tensor = None
                    out._requires_grad = False
                    out._plain = True
                    _at = next_address[0]
                    next_address[0] = _at + (_bytes + 63 & -64)
                    _storage = next_storage_id()
                    out._promised = _storage, _at
                    out._id = _number = next_tensor_id()
                    _tell((told, {label}, {pattern}, journal.where(), _storage, _bytes, _at, _number, _layout[0],
                           _layout[2], {gives}.name, r.tobytes(), {held}))
                    return out
"""
INPLACE = """
    return stage_write(op, ({names}), ({wants}) and grad_mode.enabled)
"""
COMPOSITE = """
def {name}({signature}):
    return function({names})
"""
QUICK_VIEW = """
    info = self._view_info
    if self._plain and (info is None or info is untracked):
        a = self._array
        try:
            r = quick({array_names})
        except quick_errors:
            r = None
        if r is not None and r.size:
            out = new(Tensor)
            out._array = r
            out.dtype = self.dtype
            out._storage = self._storage or self.storage_
            out._version_counter = counter = self._version_counter or self.version_counter
            out._node = out._promised = None
            out._requires_grad = False
            out._plain = True
            out._id = 0
            base = self._base_tensor
            out._base_tensor = base = self if base is None else base
            self._viewed = True
            tracked = grad_mode.enabled
            if info is not None or counter.value or not tracked:
                if counter.value or base._requires_grad or grad_mode.inference:
                    mark_view(out, self, False)
                else:
                    out._view_info = untracked
            if self._requires_grad and tracked:
                stage_track({names}out)
            return out
    return stage_view(op, ({names}))
"""
VIEW = """
    return stage_view(op, ({names}))
"""


def around(body: str, frame: str) -> str:
    """The template ``frame`` with the body of a core in its place."""
    before, after = frame.split("#body\n")
    depth = "    " if before.rstrip().endswith("try:") else ""
    return before + textwrap.indent(body.strip("\n"), depth) + "\n" + after


def quick(result: str) -> str:
    """The source that computes and tells a result in one go, given what computes it; empty for an op without it."""
    return TOLD.strip("\n").replace("#result", textwrap.indent(result.strip("\n"), " " * 12)) if result else ""


def safe(name: str) -> str:
    """A name of a schema that is no keyword of Python."""
    return f"{name}_" if name in ("from", "lambda", "in", "is", "global") else name


def usual(schema: Schema) -> str:
    """The test, as source, whether all are tensors on the CPU, numbers or tuples of them; empty where none can be."""
    first, *rest = schema.arguments or (None,)
    if first is None or not first.is_tensor or any(a.is_tensor and a.listed for a in schema.arguments):
        return ""
    if len([a for a in rest if a.is_tensor]) > 1:
        return ""
    tests = [f"isinstance({safe(first.name)}, Tensor) and {safe(first.name)}._plain"]
    for argument in rest:
        name = safe(argument.name)
        number = f"{name}.__class__ in simple"
        if argument.is_tensor:
            number = f"{name}._plain if isinstance({name}, Tensor) else {number}"
        elif argument.listed:
            number = f"{number} or {name}.__class__ is tuple and are_simple({name})"
        tests.append(f"({number})")
    return " and ".join(tests)


def pattern(schema: Schema) -> str:
    """Which arguments are tensors, as source: see :class:`stridescope.engine.events.bundles.Bundle`."""
    letters = "".join("t" if a.is_tensor else "." for a in schema.arguments)
    if letters.count("t") < 2:
        return repr(letters)
    second = safe([a.name for a in schema.arguments if a.is_tensor][1])
    return f"{letters!r} if isinstance({second}, Tensor) else {'t' + '.' * (len(letters) - 1)!r}"


def written(argument: Argument, schema: Schema) -> str:
    """What a bundle writes for an argument, as source."""
    name = safe(argument.name)
    if not argument.is_tensor:
        return name
    number = f"{name}._id or tensor_id({name})"
    return number if argument is schema.arguments[0] else f"({number}) if isinstance({name}, Tensor) else {name}"
