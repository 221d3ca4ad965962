"""Reads the pickle of a checkpoint without ever running what the file names, but for a list of harmless things."""

from __future__ import annotations

import pickle
from _codecs import encode
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

from stridescope.engine.device import device
from stridescope.engine.dtype import DTYPES
from stridescope.engine.ops.storage_objects import LEGACY, UntypedStorage
from stridescope.engine.tensor import Size, Tensor
from stridescope.engine.torch import _utils
from stridescope.engine.torch.nn.parameter import Parameter

BLOCKED = ("sys", "os", "posix", "nt")
# What a checkpoint of weights needs: containers, memo, numbers and text; no code is looked up or called by others.
OPCODES = (
    "PROTO", "GLOBAL", "NEWOBJ", "REDUCE", "BUILD", "APPEND", "APPENDS", "SETITEM", "SETITEMS", "MARK", "TUPLE",
    "TUPLE1", "TUPLE2", "TUPLE3", "NONE", "NEWFALSE", "NEWTRUE", "EMPTY_TUPLE", "EMPTY_LIST", "EMPTY_DICT",
    "EMPTY_SET", "BININT", "BININT1", "BININT2", "BINFLOAT", "BINUNICODE", "SHORT_BINSTRING", "BINPERSID", "BINGET",
    "LONG_BINGET", "BINPUT", "LONG_BINPUT", "LONG1", "STOP",
)  # fmt: skip
_Python: Any = pickle._Unpickler


class Allowed:
    """What users have added to the list of harmless things."""

    globals: list[Any] = []


def allowed_globals() -> dict[str, Any]:
    """Everything a file may name."""
    found: dict[str, Any] = {
        "collections.OrderedDict": OrderedDict, "collections.Counter": Counter, "torch.Size": Size,
        "torch.Tensor": Tensor, "torch.device": device, "torch.nn.parameter.Parameter": Parameter,
        "torch._tensor._rebuild_from_type_v2": _utils._rebuild_from_type_v2, "_codecs.encode": encode,
        "builtins.bytearray": bytearray, "builtins.set": set, "builtins.complex": complex,
        "torch.storage.UntypedStorage": UntypedStorage,
    }  # fmt: skip
    found |= {f"torch._utils.{function.__name__}": function for function in _utils.REBUILD}
    found |= {f"torch.{kind.name}": kind for kind in DTYPES} | {f"torch.{name}": kind for name, kind in LEGACY.items()}
    for item in Allowed.globals:
        thing, name = item if isinstance(item, tuple) else (item, f"{item.__module__}.{item.__qualname__}")
        found[name] = thing
    return found


class _Opcodes(dict[int, Callable[..., None]]):
    """The readers of the allowed opcodes; raises UnpicklingError for any other."""

    def __missing__(self, code: int) -> Any:
        raise pickle.UnpicklingError(f"Unsupported operand {code}")


class Unpickler(_Python):  # type: ignore[misc]
    """Python's own unpickler with fewer opcodes, names from the list only, and checks on what is called or filled."""

    def __init__(self, file: Any, persistent_load: Callable[[Any], Any]) -> None:
        super().__init__(file, encoding="utf-8")
        self.allowed = allowed_globals()
        self.load_storage = persistent_load

    def persistent_load(self, pid: Any) -> Any:
        """Only storages are kept outside of the pickle."""
        if not isinstance(pid, tuple) or not pid or pid[0] != "storage":
            raise pickle.UnpicklingError(f"Only persistent_load of storage is allowed, but got {type(pid)}")
        return self.load_storage(pid)

    def find_class(self, module: str, name: str) -> Any:
        """A name from the list; raises UnpicklingError for others, and says how to add them."""
        if (module, name) in NAME_MAPPING:  # protocol 2 names things as Python 2 did
            module, name = NAME_MAPPING[module, name]
        module = IMPORT_MAPPING.get(module, module)
        path = f"{module}.{name}"
        if module.partition(".")[0] in BLOCKED:
            raise pickle.UnpicklingError(f"Trying to load unsupported GLOBAL {path} whose module {module} is blocked.")
        if path in self.allowed:
            return self.allowed[path]
        path = path.removeprefix("builtins.")
        raise pickle.UnpicklingError(
            f"Unsupported global: GLOBAL {path} was not an allowed global by default. Please use "
            f"`torch.serialization.add_safe_globals([{path}])` or the `torch.serialization.safe_globals([{path}])` "
            "context manager to allowlist this global if you trust this class/function."
        )

    def _is_allowed(self, thing: Any) -> bool:
        return any(thing is known for known in self.allowed.values())

    def load_newobj(self) -> None:
        """Make an object of an allowed class."""
        kind = self.stack[-2]
        if not self._is_allowed(kind):
            raise pickle.UnpicklingError(
                "Can only create new object for nn.Parameter or classes allowlisted via `add_safe_globals` but got "
                f"{kind}"
            )
        super().load_newobj()

    def load_reduce(self) -> None:
        """Call an allowed function."""
        if not self._is_allowed(self.stack[-2]):
            raise pickle.UnpicklingError(f"Trying to call reduce for unrecognized function {self.stack[-2]}")
        super().load_reduce()

    def load_build(self) -> None:
        """Give an object of an allowed class its attributes."""
        kind = type(self.stack[-2])
        if not self._is_allowed(kind):
            raise pickle.UnpicklingError(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got "
                f"{kind}"
            )
        if kind is OrderedDict:
            state = self.stack.pop()
            self.stack[-1].__dict__.update(state)
        else:
            super().load_build()

    dispatch = _Opcodes({getattr(pickle, name)[0]: _Python.dispatch[getattr(pickle, name)[0]] for name in OPCODES})
    dispatch[pickle.NEWOBJ[0]], dispatch[pickle.REDUCE[0]], dispatch[pickle.BUILD[0]] = (
        load_newobj, load_reduce, load_build,
    )  # fmt: skip
