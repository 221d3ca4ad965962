"""The command line: ``stridescope COMMAND …``, each command listed once in ``COMMANDS``.

Nothing is imported before a command needs it: ``stridescope run`` starts as fast as Python and the engine allow.
Exit status: 0 on success, 2 on bad use, 1 on failure, and of ``run`` and ``record`` the script's own.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from stridescope.engine import commands
from stridescope.engine.commands import fail

DEVICE = "what cuda is: auto, cpu, sim, sim:SIZE (such as sim:16GiB) or cuda"
INTO = "record the lines of this package's functions, too, such as torch or einops (may be given more than once)"


@dataclasses.dataclass(frozen=True)
class Command:
    """One command: its name, what it does, its arguments and what runs it.

    ``splits`` says that everything after a ``--`` belongs to the user's script.
    """

    name: str
    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[Any], int]
    splits: bool = False


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", help=DEVICE)
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module")
    parser.add_argument("script", metavar="SCRIPT", help="a Python file, a notebook or a folder with __main__.py")
    parser.add_argument("arguments", metavar="ARGS", nargs=argparse.REMAINDER, help="the script's own arguments")


def _run(chosen: Any) -> int:
    return commands.run(chosen.script, chosen.arguments, chosen.device, chosen.module)


def _record_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s [-h] -o FILE [--device DEVICE] [--values V] [--into PACKAGE] [-m] SCRIPT [-- ARGS ...]"
    parser.add_argument("script", metavar="SCRIPT", help="a Python file, a notebook or a folder with __main__.py")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the recording, such as run.stride")
    parser.add_argument("--device", help=DEVICE)
    parser.add_argument("--values", choices=commands.VALUES, default="small", help="which values are kept (small)")
    parser.add_argument("--into", metavar="PACKAGE", action="append", default=[], help=INTO)
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module")


def _record(chosen: Any) -> int:
    values, device = chosen.values, chosen.device
    return commands.record(chosen.script, chosen.arguments, chosen.output, values, device, chosen.module, chosen.into)


def _inspect_arguments(parser: argparse.ArgumentParser) -> None:
    whats = "summary, steps, tensors, storages, graph, backward, allocator, modules, history:ID or history:NAME"
    parser.add_argument("recording", metavar="FILE.stride")
    parser.add_argument(
        "--step", type=int, metavar="N", help="a step, counted from 0, or from the end: -1 is the last (the default)"
    )
    parser.add_argument("--what", default="summary", help=f"{whats} (summary)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _inspect(chosen: Any) -> int:
    from stridescope.engine.commands_inspect import inspect

    return inspect(chosen.recording, chosen.step, chosen.what, chosen.json)


def _ops_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="an op, such as add or add.Tensor")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _ops(chosen: Any) -> int:
    from stridescope.engine.commands_ops import ops

    return ops(chosen.name, chosen.json)


def _screenshot_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recording", metavar="FILE.stride")
    parser.add_argument(
        "--step", type=int, metavar="N", help="a step, counted from 0, or from the end: -1 is the last (the default)"
    )
    parser.add_argument("--panel", metavar="NAME", help="one panel instead of the whole window")
    parser.add_argument("--theme", choices=("dark", "light"), default="dark")
    parser.add_argument("--lang", choices=("en", "zh"), default="en")
    parser.add_argument("-o", "--output", metavar="OUT.png", required=True)


def _screenshot(chosen: Any) -> int:
    from stridescope.app.main import screenshot

    words = {name: getattr(chosen, name) for name in ("step", "panel", "theme", "lang", "output")}
    return _drawn(lambda: screenshot(chosen.recording, **words))


def _anything(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rest", nargs=argparse.REMAINDER)


def _replay(chosen: Any) -> int:
    from stridescope.engine.commands_replay import replay

    return replay(chosen.rest)


COMMANDS = (
    Command("run", "run a script on the engine, as python would", _run_arguments, _run),
    Command("record", "run a script and record it", _record_arguments, _record, splits=True),
    Command("inspect", "print what a recording shows at a step", _inspect_arguments, _inspect),
    Command("replay", "run recorded allocator calls through our allocator", _anything, _replay),
    Command("ops", "the operator reference", _ops_arguments, _ops),
    Command("devices", "what cuda would be here, and why", lambda parser: None, lambda _: commands.devices()),
    Command("screenshot", "render a panel or the window to a picture", _screenshot_arguments, _screenshot),
)

PLANNED = ("explain", "export")  # names that are kept for commands to come: no script is opened by them


def _usage() -> str:
    width = max(len(command.name) for command in COMMANDS)
    listed = "\n".join(f"  {command.name:{width}}  {command.summary}" for command in COMMANDS)
    return (
        "usage: stridescope [--device …] [--theme dark|light] [--lang en|zh] [--scale N]\n"
        "                   [SCRIPT [ARGS…] | FILE.stride]\n"
        "                                 open the window\n"
        "       stridescope COMMAND …     without the window; COMMAND --help has the details\n\n"
        f"commands:\n{listed}"
    )


def _window(words: list[str]) -> int:
    from stridescope.app import main as window

    return _drawn(lambda: window.main(words))


def _drawn(draw: Callable[[], int]) -> int:
    """Do something with Qt, which may be there without the libraries of the system that it needs."""
    try:
        return draw()
    except ImportError as error:
        return fail(f"the window cannot be opened here: {error}")


def _parsed(command: Command, words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"stridescope {command.name}", description=command.summary)
    command.add_arguments(parser)
    rest: list[str] = []
    if command.splits and "--" in words:
        at = words.index("--")
        words, rest = words[:at], words[at + 1 :]
    chosen = parser.parse_args(words)
    if command.splits:
        chosen.arguments = rest
    return chosen


def _dispatch(words: list[str]) -> int:
    first = words[0] if words else ""
    if first in ("-h", "--help"):
        print(_usage())
        return 0
    if first == "--version":
        from importlib.metadata import version

        print(f"stridescope {version('stridescope')}")
        return 0
    for command in COMMANDS:
        if command.name == first:
            # What follows belongs to `replay` as it stands: it has a parser of its own.
            if command.run is _replay:
                return _replay(argparse.Namespace(rest=words[1:]))
            return command.run(_parsed(command, words[1:]))
    if first in PLANNED and not os.path.exists(first):
        return fail(f"the command {first} is not in Stridescope yet", 2)
    return _window(words)


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line and end the process with its exit status."""
    listed = list(sys.argv[1:] if words is None else words)
    if listed[:1] in (["run"], ["record"]):
        commands.leave(_dispatch(listed))  # the output and the end are the script's own
    sys.exit(_spoken(listed))


def _spoken(words: list[str]) -> int:
    """Run a command that prints for us, and end quietly when nobody reads on or wants to wait."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        status = _dispatch(words)
        sys.stdout.flush()
    except BrokenPipeError:  # as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    except KeyboardInterrupt:
        status = 130
    return status


if __name__ == "__main__":
    main()
