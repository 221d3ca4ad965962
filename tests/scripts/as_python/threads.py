"""Threads: one fails, one outlives the script."""

import threading


def work(number):
    if number == 2:
        raise ValueError("the second one fails")
    results.append(number)


results = []
threads = [threading.Thread(target=work, args=(number,), name=f"worker {number}") for number in range(4)]
for thread in threads:
    thread.start()
    thread.join()
print(sorted(results))


def late():
    main_is_done.wait()
    print("a thread outlives the script")


main_is_done = threading.Event()
threading.Thread(target=late).start()
main_is_done.set()
