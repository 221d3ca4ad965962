"""Waits for a lock that nobody lets go of."""

import threading

lock = threading.Lock()
lock.acquire()
lock.acquire()
