"""Values that are there later."""

import torch
from torch.futures import Future, collect_all, wait_all


def say(act):
    try:
        print(act())
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0])


f = Future()
say(f.done)
seen = []
f.add_done_callback(lambda done: seen.append(done.value()))
later = f.then(lambda done: done.wait() + 1)
f.set_result(torch.ones(1))
print(f.done(), f.wait(), f.value(), later.wait(), seen)
say(lambda: f.set_result(3))
wrong = f.then(lambda done: 1 / 0)
say(wrong.wait)
say(wrong.then(lambda done: done.value()).wait)
f = Future()
f.set_exception(ValueError("no such value"))
say(f.wait)
say(f.value)
say(lambda: Future().set_exception(3))
many = [Future() for _ in range(3)]
whole = collect_all(many)
for place, each in enumerate(many):
    print(whole.done())
    each.set_result(place)
print([each.wait() for each in whole.wait()], wait_all(many), collect_all([]).wait(), wait_all([]))
many = [Future(), Future()]
whole = collect_all(many)
many[0].set_exception(ValueError("the first"))
print(whole.done())
many[1].set_result(3)
print(whole.done())
say(whole.wait)
say(lambda: wait_all(many))
print(Future[int], Future.__module__)
