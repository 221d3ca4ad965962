"""A second thread runs for ever."""

import threading


def spin():
    while True:
        pass


threading.Thread(target=spin).start()
