"""Generators and a coroutine that wait while others run; the same names stand for other values in each."""

import asyncio

import torch


def numbers(n):
    k = 100
    for i in range(n):
        k = k + 1
        yield torch.full((2,), float(i))


def double(t):
    k = -1
    return t * 2


def main():
    k = 7
    total = torch.zeros(2)
    for t in numbers(2):
        u = double(t)
        total = total + u
    return total + k


async def job(k):
    await asyncio.sleep(0)
    return torch.ones(k)


async def together():
    return await asyncio.gather(job(2), job(3))


print(main())
print(asyncio.run(together()))
