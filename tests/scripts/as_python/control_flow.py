"""Every way in which control goes from line to line: what tells of lines must not miss one, nor tell of one twice."""

import asyncio
import contextlib


class Suppressed:
    def __enter__(self):
        return self

    def __exit__(self, *what):
        return True


def loops(limit):
    found = []
    for number in range(limit):
        if number == 1:
            continue
        if number > 4:
            break
        found.append(number)
    else:
        found.append("never")
    while limit > 0: limit -= 1
    while True:
        limit += 1
        if limit > 2:
            return found, limit


def returns_inside(numbers):
    for number in numbers:
        with contextlib.suppress(ValueError):
            try:
                if number > 1:
                    return number
                raise ValueError(number)
            finally:
                number += 1
    return None


def chosen(value):
    match value:
        case [first, *rest]:
            return first, rest
        case {"key": inner} if inner:
            return inner
        case str() | bytes():
            return "text"
        case _:
            return (
                "other",
                value,
            )


def handled(kind):
    with Suppressed():
        raise kind("in with")
    with Suppressed():
        pass
    try:
        raise kind("in try")
    except (KeyError, OSError) as error:
        name = type(error).__name__
    except ValueError:
        name = "value"
    else:
        name = "none"
    finally:
        kind = None
    return name, kind


def numbers(count):
    for number in range(count):
        got = yield number
        if got: yield got
    return (yield from iter("ab"))


async def ticks(count):
    for number in range(count):
        await asyncio.sleep(0)
        yield number


async def waits():
    found = [tick async for tick in ticks(3)]
    async for tick in ticks(2):
        found.append(tick)
    async with contextlib.AsyncExitStack():
        found.append(await asyncio.sleep(0, "slept"))
    return found


print(loops(3), loops(9))
print(returns_inside([1, 2, 3]), returns_inside([]), returns_inside([0]))
print(chosen([1, 2]), chosen({"key": 3}), chosen("x"), chosen(4.0))
print(handled(KeyError), handled(ValueError))
asked = numbers(3)
print(next(asked), asked.send("sent"), list(asked))
print(asyncio.run(waits()))
print([
    row * column
    for row in range(3)
    for column in range(2)
    if row != column
])
print(sorted({key: value for key, value in zip("ab", (lambda n: (n, n + 1))(1))}), end="\n" if asked else
      "")
exec("for k in range(2):\n    pass\nassert k == 1\ndef late(): return (\n    k)\nlate()")
