"""What the editor says of the name under the mouse: its value at the step we look at."""

from __future__ import annotations

import re

from stridescope.app.moment import Moment
from stridescope.app.recorded_values import NotRecorded, PastTensor, evaluate, text_of
from stridescope.app.text import tr
from stridescope.app.values import list_text

_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[[\w'\"]+\])*")


def hover_words(moment: Moment, line: str, column: int) -> str:
    """Return what the name or path at a column of a line stands for, or ""."""
    for found in _PATH.finditer(line):
        if found.start() <= column < found.end():
            end = re.compile(r"[.\[]|$").search(line, max(column, found.start()), found.end())
            path = line[found.start() : end.start() if end else found.end()]
            return _words(moment, path) or (_words(moment, found.group()) if path != found.group() else "")
    return ""


def _words(moment: Moment, path: str) -> str:
    try:
        value = evaluate(moment.state, path)
    except NotRecorded:
        return ""
    begin = f"{path} = "
    said = begin + text_of(value).replace("\n", "\n" + " " * len(begin))  # rows stay one under the other
    if not isinstance(value, PastTensor):
        return said
    tensor, storage = value.tensor, moment.state.storages.get(value.tensor.storage)
    facts = tr(
        "stride {stride} · {device} · version {version}",
        stride=list_text(tensor.strides),
        device=storage.device if storage else "cpu",
        version=tensor.version,
    )
    return f"{said}\n{facts}"
