"""Module events: what ``torch.nn.Module`` objects are made of, and when their ``forward`` runs."""

from __future__ import annotations

from stridescope.engine.events.base import Event


class ModuleMade(Event, family="module"):
    """A module is made: {kind}."""

    module: int
    kind: str


class ModuleBecame(Event, family="module"):
    """The module is now {kind}."""

    module: int
    kind: str


class ParameterSet(Event, family="module"):
    """{name} is now a parameter of the module."""

    module: int
    name: str
    tensor: int


class BufferSet(Event, family="module"):
    """{name} is now a buffer of the module."""

    module: int
    name: str
    tensor: int


class ChildSet(Event, family="module"):
    """{name} is now a module inside the module."""

    module: int
    name: str
    child: int


class PartRemoved(Event, family="module"):
    """{name} is no part of the module any more."""

    module: int
    name: str


class ModeSet(Event, family="module"):
    """The module's training is now {training}."""

    module: int
    training: bool


class ForwardBegan(Event, family="module"):
    """The forward of a module begins."""

    module: int


class ForwardEnded(Event, family="module"):
    """The forward of the module is over."""

    module: int


class ModuleFreed(Event, family="module"):
    """The module is gone."""

    module: int
