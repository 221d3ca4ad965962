"""Decorators, closures, exec, eval and locals()."""

import functools


def twice(function):
    @functools.wraps(function)
    def wrapper(*arguments, **named):
        return function(*arguments, **named), function(*arguments, **named)

    return wrapper


@twice
def add(a, b=1, /, *rest, c=2, **others):
    return a + b + sum(rest) + c + sum(others.values())


class Counter:
    total = 0

    def __init__(self):
        self.seen = []

    def __call__(self, value):
        nonlocal_value = value

        def inner():
            nonlocal nonlocal_value
            nonlocal_value += 1
            return nonlocal_value

        type(self).total += inner()
        self.seen.append(value)
        return self


print(add(1), add(1, 2, 3, c=4, d=5), add.__name__)
space = {}
exec("def made(x):\n    return x * 10\nresult = made(4)", space)
print(space["result"], eval("space['made'](2)"))
print(Counter()(1)(2).seen, Counter.total)
held = locals()
print("held" in held, (lambda x, *y: (x, y))(1, 2))
