"""Panels: one file each, every one a function of (recording, cursor)."""
