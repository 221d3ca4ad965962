"""Does nothing for ever, in one line."""

while True: pass
