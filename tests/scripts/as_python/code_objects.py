"""Functions and their code, looked at, copied, sent elsewhere and run from there."""

from __future__ import annotations

import inspect
import marshal
import pickle
import types


def counted(a, *more, b=2, **named):
    """Counts."""
    held = a + b

    def inner():
        nonlocal held
        held += 1
        return held

    inner()
    del a
    return held, [y := held, [held for held in range(2)]], y, dir(), sorted(locals())


def only_doc():
    "What it is for."


class Base:
    """Made by itself."""

    kind: int = 1

    def me(self):
        return __class__

    def shown(self):
        return super().__str__()[:6]


def squares(n):
    for i in range(n):
        try:
            yield i * i
        finally:
            pass


print(counted(1), only_doc.__doc__, only_doc(), Base.__doc__, Base.__annotations__, Base().me() is Base)
code = counted.__code__
print(code.co_varnames, code.co_names, code.co_cellvars, code.co_freevars, code.co_flags, code.co_firstlineno)
print(code.co_name, code.co_qualname, code.co_consts[0], code.co_argcount, code.co_kwonlyargcount, code.co_nlocals)
print(inspect.getsource(only_doc), inspect.signature(counted), inspect.getclosurevars(counted).globals)
print(sorted({line for _, _, line in code.co_lines() if line}), {code: "known"}[code], code == code, code != code)
print(pickle.loads(pickle.dumps(only_doc)) is only_doc)
sent = types.FunctionType(marshal.loads(marshal.dumps(code)), globals(), "sent")
sent.__kwdefaults__ = counted.__kwdefaults__
print(sent(5), sent.__code__.co_firstlineno == code.co_firstlineno)
generator = types.FunctionType(marshal.loads(marshal.dumps(squares.__code__)), globals())
print(list(generator(4)))
copied = types.FunctionType(code.replace(co_name="copied"), globals())
copied.__kwdefaults__ = {"b": 7}
print(copied(1), copied(2))
swapped = lambda a, b=0, **named: None
swapped.__code__ = (lambda a, b=0, **named: (a, b, named)).__code__
print(swapped(1, c=3), [*map(lambda x: x * 2, range(3))], (lambda: (yield))().send(None))
rebuilt = types.CodeType(*(getattr(squares.__code__, "co_" + name) for name in (
    "argcount", "posonlyargcount", "kwonlyargcount", "nlocals", "stacksize", "flags", "code", "consts", "names",
    "varnames", "filename", "name", "qualname", "firstlineno", "linetable", "exceptiontable", "freevars", "cellvars",
)))
print(list(types.FunctionType(rebuilt, globals())(3)))
print([name for name in globals() if not name.startswith("__")])
