"""The window and its headless twin: the only room that imports Qt."""
