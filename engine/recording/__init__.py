"""Recordings: one append-only file of events, its writer, its reader, and the state at any step."""
