"""Is interrupted from the keyboard."""

import atexit

atexit.register(print, "still told")
print("working")
raise KeyboardInterrupt
