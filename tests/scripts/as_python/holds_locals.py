"""Keeps what locals() returned while new names appear."""


def has_locals():
    first = 1
    taken = locals()
    second = 2
    return sorted(taken), second


print(has_locals())
