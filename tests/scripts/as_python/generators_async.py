"""Generators, context managers and coroutines."""

import asyncio
import contextlib


def count(n):
    for i in range(n):
        got = yield i
        if got:
            print("got", got)


@contextlib.contextmanager
def managed():
    print("enter")
    try:
        yield 5
    finally:
        print("exit")


async def later(x):
    await asyncio.sleep(0)
    return x * 2


async def main():
    print(await asyncio.gather(*(later(i) for i in range(3))))
    async for value in stream():
        print(value)


async def stream():
    for i in range(2):
        yield i


g = count(3)
print(next(g), g.send("hello"), list(g))
half = count(3)
next(half)
del half
with managed() as five, contextlib.suppress(ZeroDivisionError):
    print(five / 0)
print([x for x in range(3) if x], {k: v for k, v in zip("ab", (1, 2))}, sum(i for i in range(4)))
asyncio.run(main())
