"""Asks for far more memory than there is."""

try:
    everything = bytearray(1 << 46)
except MemoryError:
    print("refused")
