"""Runs builtins for ever in one line."""

import itertools

for _ in itertools.count(): list(map(abs, range(1000)))
