"""Looks at what a main module has."""

import sys

import __main__


def main():
    print(__name__, __file__ == __main__.__file__, sys.argv[1:], __main__.main is main)
    print(sorted(name for name in globals() if name.startswith("__")))
    print(__spec__, __package__, __doc__, type(__loader__).__name__)


if __name__ == "__main__":
    main()
