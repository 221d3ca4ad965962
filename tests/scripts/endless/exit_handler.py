"""Is over, but its exit handler is not."""

import atexit
import time

atexit.register(time.sleep, 1000)
print("done")
