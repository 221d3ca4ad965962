"""Children and libraries write past Python's streams."""

import os
import subprocess
import sys

print("python", flush=True)
os.write(1, b"descriptor\n")
subprocess.run([sys.executable, "-c", "import sys; print('child'); print('child error', file=sys.stderr)"])
