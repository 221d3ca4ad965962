"""Two threads run the same lines at once."""

import threading


def work(name):
    count = 0
    for i in range(20):
        count += i
    results[name] = count


results = {}
threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(results.items()))
