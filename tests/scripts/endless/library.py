"""Is caught in a regular expression, which keeps the interpreter's lock."""

import re
import time

time.sleep(0.2)
re.match(r"(a+)+$", "a" * 60 + "b")
