"""The engine: PyTorch's semantics over NumPy, the worker that runs scripts on it, and recordings. No Qt in here."""
