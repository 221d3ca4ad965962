"""Painted items that panels share. They know numbers and colours, not events."""
