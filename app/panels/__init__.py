"""Panels: one file each, every one a function of (recording, cursor). ``PANELS`` is the list."""

from stridescope.app.panels import (
    allocator,
    breakpoints,
    calls,
    console,
    dispatcher,
    editor,
    events,
    graph,
    hooks,
    modules,
    output,
    saved,
    storage,
    story,
    tensors,
    timeline,
    variables,
    watches,
)
from stridescope.app.panels.spec import PanelSpec

PANELS: tuple[PanelSpec, ...] = (
    editor.SPEC,
    tensors.SPEC,
    variables.SPEC,
    watches.SPEC,
    calls.SPEC,
    breakpoints.SPEC,
    storage.SPEC,
    allocator.SPEC,
    dispatcher.SPEC,
    modules.SPEC,
    graph.SPEC,
    saved.SPEC,
    hooks.SPEC,
    timeline.SPEC,
    story.SPEC,
    output.SPEC,
    console.SPEC,
    events.SPEC,
)
BY_ID = {spec.id: spec for spec in PANELS}
