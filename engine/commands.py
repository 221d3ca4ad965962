"""The headless commands that run something: ``run``, ``record`` and ``devices``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

# --values: the largest storage, in bytes, whose contents are kept at every version; of larger ones a summary is kept.
VALUES = {"none": -1, "summary": 0, "small": 1 << 16, "full": 1 << 62}


def fail(message: str, status: int = 1) -> int:
    """Say in one line what went wrong and return the exit status."""
    print("stridescope: " + " ".join(message.split()), file=sys.stderr)
    return status


def run(script: str, arguments: Sequence[str], device: str | None, module: bool) -> int:
    """Run a script on the engine as ``python SCRIPT ARGS`` would, and return its exit status."""
    from stridescope.engine.worker.launch import LaunchError, run_script

    if device is not None and (fault := _configure(device)):
        return fail(fault, 2)
    try:
        return run_script(script, arguments, module=module)
    except LaunchError as error:
        return fail(str(error), 2)


def record(
    script: str,
    arguments: Sequence[str],
    output: str,
    values: str,
    device: str | None,
    module: bool = False,
    into: Sequence[str] = (),
) -> int:
    """Do what ``run`` does, recorded into the file ``output``; ``into`` names packages to be recorded by line, too."""
    from stridescope.engine.recording.store import RecordingError
    from stridescope.engine.worker.belongs import places_of
    from stridescope.engine.worker.launch import LaunchError
    from stridescope.engine.worker.recorded import record_script

    if strange := [name for name in into if not places_of(name)]:
        return fail(f"there is no package {strange[0]!r} to step into", 2)
    if device is not None and (fault := _configure(device)):
        return fail(fault, 2)
    try:
        return record_script(script, arguments, output, module=module, keep_values=VALUES[values], step_into=into)
    except LaunchError as error:
        return fail(str(error), 2)
    except RecordingError as error:
        return fail(str(error))


def devices() -> int:
    """Say what each device would be here, and why."""
    from stridescope.engine.devices import registry

    print("cpu: the memory of this process")
    print(registry.describe())
    return 0


def _configure(device: str) -> str:
    from stridescope.engine.devices import registry

    try:
        registry.configure(device)
    except ValueError as error:
        return str(error)
    return ""


def leave(status: int) -> None:
    """End the process as the script's status asks: a negative one is the signal that ended it."""
    from stridescope.engine.worker import launch

    launch.leave(status)
