"""Prints a chain of exceptions and ends in a group of them."""

class Wrong(Exception):
    pass


def inner():
    return {}["missing"]


def outer():
    try:
        inner()
    except KeyError as error:
        raise Wrong("no luck") from error


try:
    outer()
except Wrong:
    import traceback

    traceback.print_exc()
raise ExceptionGroup("several", [Wrong(1), ValueError(2)])
