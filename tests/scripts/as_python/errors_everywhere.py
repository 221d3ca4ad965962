"""Exceptions raised, chained, grouped, thrown in, swallowed, raised again: every traceback is printed."""

import sys
import traceback


def shown():
    traceback.print_exc(file=sys.stdout)
    print(sys.exc_info()[0])


def chained():
    try:
        try:
            {}["k"]
        except KeyError as error:
            raise ValueError("x" +
                             "y") from error
    except ValueError:
        shown()
    try:
        try:
            1 / 0
        finally:
            [1][
                5]
    except IndexError:
        shown()


def grouped():
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2), OSError(3)])
    except* ValueError as group:
        print(group.exceptions)
    except* TypeError:
        shown()
        raise KeyError("inside")


def again(error):
    for _ in range(2):
        try:
            raise error
        except ValueError as caught:
            print(len(traceback.extract_tb(caught.__traceback__)), caught.__context__)
    try:
        try:
            raise error.with_traceback(None)
        except ValueError:
            raise
    except ValueError:
        shown()


def values():
    try:
        got = yield 1
        print("got", got)
        yield from inner()
    except ValueError as error:
        print("thrown", error.__traceback__.tb_lineno, error.__context__)
        yield "after"
    finally:
        print("closed", sys.exc_info()[0])


def inner():
    try:
        yield 2
    except GeneratorExit:
        print("inner exit")
        raise


def stops():
    yield 1
    raise StopIteration("inside")


class Manager:
    def __enter__(self): return self
    def __exit__(self, *what):
        print(what[0])
        if what[0] is KeyError: raise IndexError("from exit")
        return what[0] is ValueError


def main():
    chained()
    try:
        grouped()
    except BaseException:
        shown()
    again(ValueError("same"))
    print(sys.exc_info())
    generator = values()
    print(next(generator), generator.send("s"), generator.throw(ValueError("t")))
    generator.close()
    generator = values()
    next(generator), generator.send(1)
    generator.close()
    generator = values()
    next(generator)
    del generator
    generator = values()
    generator.close()
    try: generator.throw(KeyError("never started"))
    except KeyError: shown()
    for error in ValueError, KeyError, TypeError:
        try:
            with Manager(): raise error
        except Exception: shown()
    try:
        list(stops())
    except RuntimeError: shown()
    try: sorted([1, 2, 3], key=lambda x: 1 / (x - 2))
    except ZeroDivisionError: shown()
    print(any(map(lambda x: x > 1, range(4))), sum(x for x in range(4)))
    try: raise
    except RuntimeError as error: print(error)
    try: exec(compile("(1 +\n2 / 0)", "<typed>", "eval"))
    except ZeroDivisionError: shown()


main()
value = (
    1 +
    None)
