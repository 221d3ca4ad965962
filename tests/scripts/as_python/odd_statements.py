"""Statements in every form that changes where control goes, many on one line."""

import contextlib
import gc
import weakref


@contextlib.contextmanager
def swallows(kind):
    try:
        yield kind
    except kind:
        print("swallowed", kind.__name__)


class Meta(type):
    def __prepare__(name, bases, **named): return {"made": 1}
    def __new__(meta, name, bases, space, **named): return super().__new__(meta, name, bases, dict(space))


class Made(metaclass=Meta, flag=True): x = 1; y = [x for x in range(2)]


def nested():
    with swallows(KeyError):
     with swallows(ValueError):
      with swallows(TypeError), swallows(IndexError):
       for a in 1,:
        for b in 2,:
         while True:
          try:
           try:
            try:
             try:
              try:
               try:
                try:
                 return a
                finally: print("a")
               finally: print("b")
              finally: print("c")
             finally: print("d")
            finally: print("e")
           finally: print("f")
          finally: print("g")


def loops():
    i = 0
    while i < 3: i += 1
    while i: i -= 1
    for i in range(4):
        if i == 1: continue
        try:
            if i == 3: break
        finally: print("round", i)
    else: print("never")
    for _ in (): pass
    else: print("else")
    for i in range(2): print(i); print(-i)
    while True:
        if (i := i + 1) > 3: break
    else: print("never")
    return i


def called(*given, **named): return given, sorted(named)


def many_lines():
    return (called(
        1,
        *[2,
          3],
        a=4,
        **{"b":
           5}
    ), called(a=1,
              b=2)
        [0].
        count(
            *["a"]), called
        (z=1,
         y=2))


def chosen(value):
    match value:
        case {"a": [x, *rest]} if rest: return x, rest
        case [1, (2 | 3) as y]: return y
        case int() | None: return "plain"
        case _: pass
    return "none"


class Dies:
    def __init__(self, number): self.number = number
    def __del__(self): print("dies", self.number)


def lets_go():
    held = Dies(1)
    held = Dies(2)
    seen = weakref.ref(held)
    del held
    return seen()


def fails():
    held = Dies(3)
    raise RuntimeError


print(Made.made, Made.x, Made.y, nested(), loops(), many_lines())
print([chosen(value) for value in ({"a": [1, 2]}, [1, 3], 5, "x")], lets_go())
try: fails()
except RuntimeError: print("caught")
with swallows(ZeroDivisionError): 1 / 0
with contextlib.suppress(KeyError), contextlib.suppress(ValueError): int("x")
print({k: v for k, v in {1: 2}.items()}, {i for i in range(3)}, [(i, j) for i in range(2) for j in range(i) if j < 5])
assert gc.collect() >= 0, "counted"
if 0: print("never")
elif 1: print("elif")
else: print("never")
x = 1; y = 2; print(x + y); del x, y
try: x
except NameError as error: print(error)
global_one: "annotated" = 3
print(__annotations__, "error" in globals(), lambda_is := (lambda a, /, b, *, c: a + b + c)(1, 2, c=3))
