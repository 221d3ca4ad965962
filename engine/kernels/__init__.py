"""Kernels: what computes values, in NumPy for the CPU. They know arrays and layouts, never tensors."""
