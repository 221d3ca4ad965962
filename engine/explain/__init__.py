"""Explanations: rules that read a recording and say why, in words."""
