"""Native code gives up, as a failed assertion of a C library does."""

import ctypes

value = 1
ctypes.CDLL(None).abort()
