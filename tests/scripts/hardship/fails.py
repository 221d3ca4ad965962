"""Fails two calls deep, with something to look at in each frame."""


def divide(a, b):
    return (a + 1) / (b - b)


def outer(n):
    twice = n * 2
    return divide(twice, n)


print("about to fail")
outer(4)
