"""What the recording knows of names: every change, before the next line, and nothing that runs the script's code."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from stridescope.engine.events import (
    FrameEntered,
    FrameLeft,
    LineReached,
    NameBound,
    NameUnbound,
    RecordingCut,
    TensorFreed,
)
from stridescope.engine.recording.reader import Recording

Writer = Callable[..., pathlib.Path]
Runner = Callable[..., tuple[int, str, str]]
Read = Callable[[str], list[Any]]


@pytest.fixture
def recorded(script: Writer, record: Runner, tmp_path: pathlib.Path) -> Read:
    """Record a script and return its events."""

    def run(source: str) -> list[Any]:
        status, _, errors = record(script(source))
        assert status == 0, errors
        with Recording.open(tmp_path / "recorded.stride") as recording:
            return list(recording.events(0, recording.steps - 1))

    return run


def told(events: list[Any]) -> list[tuple[str, str]]:
    """Every name and what it stands for, in order; a name that is gone stands for nothing."""
    changes = [event for event in events if isinstance(event, (NameBound, NameUnbound))]
    return [(change.name, getattr(change, "text", "gone")) for change in changes]


# A script, and each name with what it stands for, in order.
CASES = {
    "assign": (
        """
        a = b = 1
        c, (d, *e) = 2, (3, 4)
        """,
        "a=1; b=1; c=2; d=3; e=[4]",
    ),
    "augmented": (
        """
        a = 1
        a += 1
        """,
        "a=1; a=2",
    ),
    "walrus": (
        """
        if (n := 3) > 2:
            pass
        """,
        "n=3",
    ),
    "loop": (
        """
        for i in (1, 2):
            pass
        """,
        "i=1; i=2",
    ),
    "loop_in_one_line": (
        """
        for i in (1, 2): j = i
        """,
        "i=1; j=1; i=2; j=2",
    ),
    "delete": (
        """
        a = 1
        del a
        """,
        "a=1; a=gone",
    ),
    "with": (
        """
        import io
        with io.StringIO() as f:
            pass
        """,
        "io=<module io>; f=<StringIO>",
    ),
    "import": (
        """
        import os.path as p, math
        from math import pi as q
        """,
        "p=<module posixpath>; math=<module math>; q=3.141592653589793",
    ),
    "function": (
        """
        def f(x): pass
        class C: pass
        """,
        "f=<function f>; C=<class C>",
    ),
    "except": (
        """
        try:
            1 / 0
        except ZeroDivisionError as e:
            x = 1
        y = 2
        """,
        "e=<ZeroDivisionError>; x=1; e=gone; y=2",
    ),
    "parameters": (
        """
        def f(a, *b, c=3, **d):
            return a
        f(1, 2)
        """,
        "f=<function f>; a=1; c=3; b=(2,); d={}",
    ),
    "global": (
        """
        n = 1
        def f():
            global n
            n = 2
            return 0
        f()
        """,
        "n=1; f=<function f>; n=2",
    ),
    "closure": (
        """
        def f():
            n = 1
            def g():
                nonlocal n
                n = 2
                return 0
            return g()
        f()
        """,
        "f=<function f>; n=1; g=<function g>; n=2",
    ),
    "comprehension": (
        """
        a = [1]
        b = [x for x in a]
        """,
        "a=[1]; b=[1]",
    ),
    "in_place": (
        """
        a = [1]
        a.append(2)
        b = {}
        b['k'] = a
        """,
        "a=[1]; a=[1, 2]; b={}; b={'k': [1, 2]}",
    ),
    "match": (
        """
        match (1, 2):
            case (x, y):
                pass
        """,
        "x=1; y=2",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_way_to_bind_a_name_is_told(name: str, recorded: Read) -> None:
    source, wanted = CASES[name]
    inner = {"x"} if name == "comprehension" else set()  # until 3.11 a comprehension is a call of its own
    found = [f"{name}={text}" for name, text in told(recorded(source)) if name not in inner]
    assert "; ".join(found) == wanted


TEXTS = {
    "1.5": "1.5",
    "2 ** 300": "<int of 301 bits>",
    "10 ** 5000": "<int of 16610 bits>",
    "'it\\'s'": '"it\'s"',
    "[]": "[]",
    "(1,)": "(1,)",
    "{1}": "{1}",
    "frozenset({1})": "frozenset({1})",
    "{'a': [1, (2,)]}": "{'a': [1, (2,)]}",
    "list(range(100))": "[0, 1, 2, 3, 4, 5, 6, 7, … 100 items]",
    "['twelve chars'] * 40": "['twelve chars', 'twelve chars', 'twelve chars', 'twelve chars', … 40 items]",
    "[[[[1]]]]": "[[[[…]]]]",
    "len": "<function len>",
    "[].append": "<function append>",
    "range(3)": "range(0, 3)",
    "object()": "<object>",
    "int": "<class int>",
    "__import__('collections').namedtuple('P', 'x y')(1, 2)": "P((1, 2))",
    "__import__('collections').OrderedDict(a=1)": "OrderedDict({'a': 1})",
    "(lambda: 0)": "<function <lambda>>",
    "None": "None",
}


def test_texts_are_short_and_plain(recorded: Read) -> None:
    source = "".join(f"v{number} = {text}\n" for number, text in enumerate(TEXTS))
    assert [text for _, text in told(recorded(source))] == list(TEXTS.values())


def test_a_long_text_is_cut(recorded: Read) -> None:
    ((_, text),) = told(recorded("s = 'x' * 10_000_000\n"))
    assert len(text) <= 90


def test_the_scripts_own_methods_are_never_called(recorded: Read) -> None:
    source = """
        class Trap:
            def __repr__(self): print("called"); raise SystemExit(3)
            __str__ = __iter__ = __len__ = __eq__ = __hash__ = __bool__ = __repr__
            def __getattr__(self, name): self.__repr__()
        class ListTrap(list):
            def __iter__(self): raise SystemExit(4)
            __repr__ = __len__ = __iter__
        class DictTrap(dict):
            def items(self): raise SystemExit(5)
            __repr__ = __iter__ = __len__ = items
        t = Trap()
        u = [t]
        v = ListTrap([1])
        w = DictTrap(a=1)
        x = 1
    """
    texts = dict(told(recorded(source)))
    assert (texts["t"], texts["u"]) == ("<Trap>", "[<Trap>]")
    assert (texts["v"], texts["w"]) == ("ListTrap([1])", "DictTrap({'a': 1})")


def test_tensors_are_named_where_they_stand(recorded: Read) -> None:
    source = """
        import torch

        class Box:
            def __init__(self):
                self.inside = torch.ones(2)

        t = torch.ones(3)
        xs = [t, {"k": torch.zeros(1)}]
        box = Box()
        xs.pop()
        end = 1
    """
    events = recorded(source)
    bound = {event.name: event.tensor for event in events if isinstance(event, NameBound) and event.tensor}
    assert bound["t"] == bound["xs[0]"]
    assert len({bound["t"], bound["xs[1]['k']"], bound["box.inside"]}) == 3
    assert ("xs[1]['k']", "gone") in told(events)


def test_watching_keeps_no_tensor_alive(recorded: Read) -> None:
    source = """
        import torch

        def f():
            a = torch.ones(3)
            b = [a]
            del a
            b.clear()
            c = 1
            return c

        f()
    """
    events = recorded(source)
    tensor = next(event.tensor for event in events if isinstance(event, NameBound) and event.name == "a")
    freed = next(number for number, event in enumerate(events) if event == TensorFreed(tensor))
    next_line = next(
        number for number, event in enumerate(events) if isinstance(event, LineReached) and event.line == 9
    )
    assert freed < next_line


def test_calls_are_nested_and_left(recorded: Read) -> None:
    events = recorded(
        """
        def g(x):
            yield x
            yield x + 1

        class C:
            def m(self):
                return sum(g(1))

        C().m()
        for _ in range(2):
            try:
                C.m(None, None)
            except TypeError:
                pass
        """
    )
    entered = {event.frame: event for event in events if isinstance(event, FrameEntered)}
    names = {number: event.function for number, event in entered.items()}
    assert [names[number] for number in sorted(names)] == ["<module>", "C", "C.m", "g"]
    parents = {event.function: names.get(event.parent, "") for event in entered.values()}
    assert parents == {"<module>": "", "C": "<module>", "C.m": "<module>", "g": "C.m"}
    assert [names[event.frame] for event in events if isinstance(event, FrameLeft)] == ["C", "g", "C.m"]


WAYS_OUT = {
    "with": "import io\n\ndef f(a):\n    with io.StringIO():\n        return a[7]\n\n\nf([])\n",
    "finally": "def f(a):\n    try:\n        b = 1\n        return a[7]\n    finally:\n        c = 1\n\nf([])\n",
    "outer": "def f(a):\n    b = a\n    c = b\n    return a[7]\n\n\nwith open(__file__):\n    f([])\n",
    "raised again": "def f(a):\n  try:\n    b = 1\n    return a[7]\n  except LookupError:\n    raise\nf([])\n",
}


@pytest.mark.parametrize("way", WAYS_OUT)
def test_a_failure_is_seen_where_it_began_whatever_ran_since(
    way: str, script: Writer, record: Runner, tmp_path: pathlib.Path
) -> None:
    status, _, errors = record(script(WAYS_OUT[way]))
    assert status == 1 and errors.endswith("IndexError: list index out of range\n")
    with Recording.open(tmp_path / "recorded.stride") as recording:
        state = recording.state(recording.steps - 1)
    assert [frame.function for frame in state.frames] == ["<module>", "f"]
    assert state.frames[1].names["a"].text == "[]"
    kind, _, span = state.error
    assert (kind, span.line + (way == "with") * -1) == ("IndexError", 4)
    assert span.end_column - span.column == len("a[7]")


def test_a_failure_keeps_its_frames_and_names_its_expression(
    script: Writer, record: Runner, tmp_path: pathlib.Path
) -> None:
    path = script("def f(a):\n    b = [a]\n    return b[0] + b[a]\n\n\nf(7)\n")
    status, _, errors = record(path)
    assert status == 1 and errors.endswith("IndexError: list index out of range\n")
    with Recording.open(tmp_path / "recorded.stride") as recording:
        state = recording.state(recording.steps - 1)
        assert [frame.function for frame in state.frames] == ["<module>", "f"]
        assert {name: bound.text for name, bound in state.frames[1].names.items()} == {"a": "7", "b": "[7]"}
        kind, message, span = state.error
        assert (kind, message) == ("IndexError", "list index out of range")
        assert (span.line, span.column, span.end_column) == (3, 18, 22)


MODULES = """
import copy
import torch
from torch import nn
from torch.nn.utils import prune

class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.LazyLinear(3)
        self.hidden = torch.zeros(2)
        self.cache = []

    def forward(self, x):
        self.cache.append(x + 1)
        return self.lin(x)

class Trainer:
    def __init__(self, model):
        self.model = model
        self.extra = [nn.Linear(1, 1), torch.ones(1)]

cell = Cell()
cell(torch.ones(2, 2))
twin = copy.deepcopy(cell)
trainer = Trainer(nn.ModuleDict({"a": twin}))
blocks = nn.ModuleList([nn.Linear(1, 1)])
blocks.insert(0, nn.Identity())
blocks.append(nn.ReLU())
del blocks[1]
prune.l1_unstructured(twin.lin, "weight", amount=1)
twin(torch.ones(1, 2))
twin.lin.weight_mask = twin.lin.weight_mask.double()
blocks.eval()
first = blocks[0]
del cell
print("end")
"""


def test_modules_are_told_with_all_their_parts(script: Writer, record: Runner, tmp_path: pathlib.Path) -> None:
    assert record(script(MODULES))[0] == 0
    with Recording.open(tmp_path / "recorded.stride") as recording:
        state = recording.state(recording.steps - 1)
    modules = {module.path: module for module in state.modules.values()}
    assert {path: module.kind for path, module in modules.items()} == {
        "twin": "Cell", "twin.lin": "Linear", "trainer.model": "ModuleDict", "trainer.extra[0]": "Linear",
        "blocks": "ModuleList", "first": "Identity", "blocks.1": "ReLU",
    }  # fmt: skip
    parts = {name: part.role for name, part in modules["twin.lin"].parts.items()}
    assert parts == {"bias": "parameter", "weight_orig": "parameter", "weight_mask": "buffer"}
    assert state.tensors[modules["twin.lin"].parts["weight_mask"].id].dtype == "float64"
    assert not modules["blocks"].training and not modules["first"].training and modules["twin"].training
    names = {name for tensor in state.tensors.values() for name in tensor.names}
    assert names == {
        "twin.lin.weight_orig", "twin.lin.bias", "twin.lin.weight_mask", "twin.hidden", "twin.cache[0]",
        "twin.cache[1]", "trainer.extra[0].weight", "trainer.extra[0].bias", "trainer.extra[1]",
    }  # fmt: skip


IN_AN_IMPORT = """\
import sys
class Finder:
    def find_spec(self, name, path, target=None):
        seen = [name]
        return None
sys.meta_path.insert(0, Finder())
import torch
x = torch.ones(2)
end = 1
"""


def test_code_that_runs_in_the_midst_of_the_engines_import_is_recorded(recorded: Read) -> None:
    events = recorded(IN_AN_IMPORT)
    assert not [event for event in events if isinstance(event, RecordingCut)]
    assert ("end", "1") in told(events)


SHARED = """\
def outer(start):
    total = start
    def add(n):
        nonlocal total
        total += n
        return total
    add(2)
    seen = total
    del seen
    return add
add = outer(5)
last = add(10)
def numbers(k):
    while k:
        got = yield k
        k -= 1
left = list(numbers(2))
"""


def test_names_that_closures_share_and_those_of_generators_are_read(recorded: Read) -> None:
    changes = told(recorded(SHARED))
    assert [text for name, text in changes if name == "total"] == ["5", "7", "17"]
    assert [text for name, text in changes if name == "seen"] == ["7", "gone"]
    assert [text for name, text in changes if name == "k"] == ["2", "1", "0"]
    assert changes[-1] == ("left", "[2, 1]")
