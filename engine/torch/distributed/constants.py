"""Times that processes wait for each other by default."""

from __future__ import annotations

from datetime import timedelta

default_pg_timeout = timedelta(minutes=30)
