"""Ops, declared once each, by family; the explicit list of families stands here."""
