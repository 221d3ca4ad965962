"""A thread reads memory that is not there, in a call that lets the others go on."""

import ctypes
import threading

value = 1
thread = threading.Thread(target=ctypes.CDLL(None).strlen, args=(8,))
thread.start()
thread.join()
