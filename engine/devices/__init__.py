"""Devices: host memory, a GPU, a GPU in software, and the caching allocator over the last two."""
