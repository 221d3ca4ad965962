"""Exports: video, pages and pictures made from a recording and a path of the cursor."""
