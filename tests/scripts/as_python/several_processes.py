"""Starts processes by fork, by spawn and by itself."""

import multiprocessing
import os
import subprocess
import sys


def square(x):
    return x * x


if __name__ == "__main__":
    method = "fork" if os.name == "posix" else "spawn"
    with multiprocessing.get_context(method).Pool(2) as pool:
        print(pool.map(square, range(5)))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(square, range(3)))
    sys.stdout.flush()
    subprocess.run([sys.executable, "-c", "print('from a child', flush=True)"], check=True)
    print("done")
