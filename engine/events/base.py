"""Every event the engine can record, said once.

An event is one decision of the machine: a line reached, an op begun, a tensor made, a block split. Its class is a
frozen dataclass; the docstring is the sentence people read in the window (``{field}`` is filled in), ``family`` is
its lane and colour role, and the wire form is the plain tuple ``(code, *fields)``.

The hot paths never build the dataclass. They append the tuple::

    if (emit := journal.emit) is not None:
        emit((VersionBumped.code, counter, version))

Ids (tensor, storage, node, frame, source) are positive integers, unique within a run; 0 means "none". Sizes and
addresses are bytes, strides and offsets are elements. Fields hold only int, float, str, bytes, bool, None and
tuples of these, so that every recording can be read without executing anything.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, dataclass_transform

Wire = tuple[Any, ...]


@dataclass_transform(frozen_default=True)
class Event:
    """What all events share: a wire code, a family, and both directions of the wire form."""

    code: ClassVar[int]
    family: ClassVar[str]
    sentence: ClassVar[str]

    def __init_subclass__(cls, family: str) -> None:
        if not cls.__doc__:
            raise TypeError(f"event {cls.__name__} needs a docstring: it is the sentence people read")
        cls.family, cls.sentence, cls.code = family, cls.__doc__.strip(), len(EVENTS)
        dataclasses.dataclass(frozen=True)(cls)
        EVENTS.append(cls)

    def pack(self) -> Wire:
        """Return the wire form ``(code, *fields)``."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return (self.code, *(getattr(self, field.name) for field in fields))

    @staticmethod
    def unpack(wire: Wire) -> Event:
        """Build the event from its wire form; raises IndexError for an unknown code."""
        return EVENTS[wire[0]](*wire[1:])


# The order is the wire code of a running session. A recording stores names and maps them when it is opened, so old
# files stay readable when the list changes.
EVENTS: list[type[Event]] = []
