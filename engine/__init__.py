"""The engine: PyTorch's semantics over NumPy, the worker that runs scripts on it, and recordings. No Qt in here."""

import os
import warnings

# Before NumPy is loaded. Threads of BLAS wait in busy loops: the small products of the scripts that people step through
# get 75 times slower as soon as a core is taken, and the order of sums would depend on the machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# On processors with AVX-512 NumPy takes other functions (exp, log, pow, …), whose last digits are none that PyTorch
# gives there or anywhere. NumPy says it where there is nothing to disable. The names: since NumPy 2.4, and before.
os.environ.setdefault("NPY_DISABLE_CPU_FEATURES", "X86_V4 AVX512_SKX")
warnings.filterwarnings("ignore", r"[\s\S]*NPY_DISABLE_CPU_FEATURES", ImportWarning)
