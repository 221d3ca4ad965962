"""Asks twice and reads the rest."""

import sys

name = input("name? ")
print("hello", name)
rest = sys.stdin.read()
print(len(rest.splitlines()), "lines")
