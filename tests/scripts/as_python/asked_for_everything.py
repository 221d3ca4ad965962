"""Objects that tell of every attribute they are asked for, and that pose as another class: recording asks none."""

import collections


class Loud:
    def __getattribute__(self, name):
        print("asked for", name)
        return object.__getattribute__(self, name)

    def __repr__(self):
        print("shown")
        return "Loud()"


class Posing:
    """A proxy, as libraries that load lazily have them."""

    def __init__(self, kind):
        object.__setattr__(self, "kind", kind)

    @property
    def __class__(self):
        print("asked for the class")
        return object.__getattribute__(self, "kind")


loud = Loud()
many = [loud, (loud, {"loud": loud}), {"key": loud}, collections.OrderedDict(loud=loud)]
posing = [Posing(list), Posing(dict), Posing(tuple), Posing(int)]
for one in (*many, *posing):
    other = one
print(len(many), len(posing), isinstance(posing[0], list))
