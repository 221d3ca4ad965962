"""Sleeps for a quarter of an hour."""

import time

time.sleep(1000)
