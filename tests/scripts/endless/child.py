"""Waits for a child process that does not end."""

import subprocess
import sys

subprocess.run([sys.executable, "-c", "import time; time.sleep(1000)"])
