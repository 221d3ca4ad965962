"""Every panel × two recorded sessions × dark and light: it paints, in the theme's colours, without a word from Qt."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from stridescope.app import theme as themes
from stridescope.app.moment import Moment
from stridescope.app.panels import PANELS
from stridescope.app.panels.spec import PanelSpec
from stridescope.app.selection import NOTHING, follow
from stridescope.engine.recording.reader import Recording

AREAS = {"script", "state", "centre", "right", "timeline", "story", "output"}


def pixels(widget: QWidget) -> np.ndarray:
    image = widget.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    return np.array(image.constBits(), copy=True).view(np.uint32).reshape(image.height(), -1)


def moment(recording: Recording, step: int) -> Moment:
    state = recording.state(step)
    return Moment(recording, state, recording.steps - 1, follow(state) or NOTHING)


@pytest.fixture
def shown(qtbot: QtBot, recording: Recording, spec: PanelSpec, theme: themes.Theme) -> QWidget:
    themes.load_fonts()
    themes.activate(theme)
    panel = spec.make()
    qtbot.addWidget(panel)
    panel.resize(700, 640)
    if hasattr(panel, "restyle"):
        panel.restyle()
    return panel


@pytest.mark.parametrize("theme", themes.THEMES.values(), ids=lambda theme: theme.name)
@pytest.mark.parametrize("spec", PANELS, ids=lambda spec: spec.id)
def test_panel_paints_every_stop(shown: QWidget, recording: Recording, spec: PanelSpec, theme: themes.Theme) -> None:
    ground = np.uint32(theme.color("panel").rgb())
    drawn = []
    for step in [-1, *recording.stops("op").tolist()]:
        shown.present(moment(recording, step))  # type: ignore[attr-defined]
        drawn.append(int((pixels(shown) != ground).sum()))
        assert all(isinstance(words, str) for words in shown.heading())  # type: ignore[attr-defined]
    assert max(drawn) > 300, f"{spec.id} paints next to nothing"


@pytest.mark.parametrize("spec", PANELS, ids=lambda spec: spec.id)
def test_panel_says_what_it_is(qtbot: QtBot, spec: PanelSpec) -> None:
    assert spec.area in AREAS
    assert spec.title and spec.help
    panel = spec.make()
    qtbot.addWidget(panel)
    names = [panel.accessibleName(), *(child.accessibleName() for child in panel.findChildren(QWidget))]
    assert any(names), f"{spec.id} has no accessible name"


def test_ids_are_unique() -> None:
    assert len({spec.id for spec in PANELS}) == len(PANELS)


def test_pictures_have_words(qtbot: QtBot, strides: Recording) -> None:
    step = int(strides.backwards()[2])
    for spec in PANELS:
        if spec.id in ("storage", "graph", "timeline", "dispatcher", "story"):
            panel = spec.make()
            qtbot.addWidget(panel)
            panel.present(moment(strides, step))  # type: ignore[attr-defined]
            assert len(panel.accessibleDescription()) > 20, spec.id
