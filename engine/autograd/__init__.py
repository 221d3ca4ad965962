"""Autograd: nodes, the backward engine that can pause between two of them, hooks and modes."""
