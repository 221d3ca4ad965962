"""Prints without end."""

text = "x" * 99
while True:
    print(text)
