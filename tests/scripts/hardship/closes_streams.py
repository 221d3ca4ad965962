"""Closes and replaces its own streams."""

import io
import sys

print("first")
sys.stdout = io.StringIO()
print("into the void")
sys.stdout.close()
sys.stdout = None
print("nowhere")
sys.stdout = sys.__stdout__
print("last")
