"""The engine: PyTorch's semantics over NumPy, the worker that runs scripts on it, and recordings. No Qt in here."""

import os

# Before NumPy is loaded. Threads of BLAS wait in busy loops: the small products of the scripts that people step through
# get 75 times slower as soon as a core is taken, and the order of sums would depend on the machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
