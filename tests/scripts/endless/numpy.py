"""Sorts for ever inside NumPy."""

import numpy

while True:
    numpy.sort(numpy.random.rand(1000000))
