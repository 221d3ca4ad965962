"""Every action once: menus, toolbar, shortcuts, command palette and the list of keys derive from these rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

from stridescope.app.text import tr

if TYPE_CHECKING:
    from stridescope.app.main_window import MainWindow


@dataclasses.dataclass(frozen=True)
class Facts:
    """What decides whether an action can be chosen."""

    status: str
    view: int
    head: int
    steps: bool = False  # is a step on its way, after which others may follow?

    @property
    def loaded(self) -> bool:
        """Whether there is a recording."""
        return self.head >= 0

    @property
    def can_go_on(self) -> bool:
        """Whether there is something ahead: recorded steps, or a script that waits, or will after its step."""
        return self.view < self.head or self.steps or self.status == "waiting"


@dataclasses.dataclass(frozen=True)
class Action:
    """One action. ``keys`` are Qt's portable texts, the first is shown; ``menu`` is where it is listed."""

    id: str
    title: str
    keys: tuple[str, ...]
    icon: str
    tip: str
    menu: str
    enabled: Callable[[Facts], bool]
    run: Callable[[MainWindow], object]
    checkable: bool = False


def _always(_facts: Facts) -> bool:
    return True


def _loaded(facts: Facts) -> bool:
    return facts.loaded


def _ahead(facts: Facts) -> bool:
    return facts.can_go_on


def _behind(facts: Facts) -> bool:
    return facts.view > 0


def _live(facts: Facts) -> bool:
    return facts.status in ("starting", "waiting", "running", "importing")


def _running(facts: Facts) -> bool:
    return facts.status == "running"


def _waiting(facts: Facts) -> bool:
    return facts.status == "waiting"


def _has_program(facts: Facts) -> bool:
    return facts.status not in ("empty", "importing", "replay")


def _jumps(what: str, letter: str, title: str, tip: str, title_back: str, tip_back: str) -> tuple[Action, Action]:
    """Return the actions that go on to the next, and back to the last, event of a kind."""
    ahead, back = (f"Alt+{letter}",), (f"Alt+Shift+{letter}",)
    return (
        Action(f"next_{what}", title, ahead, "", tip, "Jump", _ahead, lambda w: w.stepping.run_until(what)),
        Action(f"last_{what}", title_back, back, "", tip_back, "Jump", _behind, lambda w: w.debugging.back_until(what)),
    )


# fmt: off
ACTIONS: tuple[Action, ...] = (
    Action("open", "Open…", ("Ctrl+O",), "",
           "Open a script or a recording", "File", _always, lambda w: w.ask_open()),
    Action("save", "Save script", ("Ctrl+S",), "",
           "Save the edited script", "File", _always, lambda w: w.editing.save()),
    Action("export", "Export…", ("Ctrl+E",), "",
           "Save the recording, or a picture of the window", "File", _loaded, lambda w: w.ask_export()),
    Action("quit", "Quit", ("Ctrl+Q",), "",
           "Close the window", "File", _always, lambda w: w.close()),
    Action("step", "Step", ("F10",), "step",
           "Go to the next stop, over calls", "Run", _ahead, lambda w: w.stepping.forward("over")),
    Action("into", "Into", ("F11",), "into",
           "Go to the next stop, into calls", "Run", _ahead, lambda w: w.stepping.forward("into")),
    Action("out", "Out", ("Shift+F11",), "out",
           "Go on until the call returns", "Run", _ahead, lambda w: w.stepping.forward("out")),
    Action("back", "Back", ("Shift+F10", "Ctrl+B"), "back",
           "Go back to the stop before; nothing is run again", "Run", _behind, lambda w: w.stepping.backward("over")),
    Action("back_into", "Back into", ("Ctrl+F11",), "back",
           "Go back to the stop before, into calls", "Run", _behind, lambda w: w.stepping.backward("into")),
    Action("back_out", "Back out", ("Ctrl+Shift+F11",), "back",
           "Go back to before the call, or the op, began", "Run", _behind, lambda w: w.stepping.backward("out")),
    Action("run", "Run", ("F5",), "run",
           "Run to a breakpoint or the end", "Run", _ahead, lambda w: w.stepping.run()),
    Action("run_to", "Run to the caret", ("Ctrl+F10",), "run",
           "Run until the line of the text cursor is reached", "Run", _ahead, lambda w: w.run_to_caret()),
    Action("run_back", "Run back", ("Alt+F5",), "back",
           "Go back to the breakpoint before, or to the beginning", "Run", _behind, lambda w: w.stepping.run_back()),
    Action("run_back_to", "Run back to the caret", ("Ctrl+Shift+F10",), "back",
           "Go back to where the line of the text cursor ran the last time", "Run", _behind,
           lambda w: w.debugging.run_back_to_caret()),
    Action("pause", "Pause", ("F6",), "pause",
           "Stop the running script as soon as possible", "Run", _running, lambda w: w.stepping.pause()),
    Action("stop", "Stop", ("Shift+F5",), "stop",
           "End the script; its recording stays", "Run", _live, lambda w: w.stepping.stop()),
    Action("restart", "Restart", ("Ctrl+Shift+F5",), "restart",
           "Run the script again from its first line", "Run", _has_program,
           lambda w: w.editing.restart()),
    Action("arguments", "Arguments…", (), "",
           "Run the script again with other arguments", "Run", _has_program, lambda w: w.editing.ask_arguments()),
    Action("as_module", "Run as a module", (), "",
           "Run the script again as python -m does, where its relative imports work, or again by its path", "Run",
           _has_program, lambda w: w.editing.toggle_module()),
    Action("memory", "Memory limit…", (), "",
           "End a script that holds more memory than this; its recording stays", "Run", _always,
           lambda w: w.debugging.ask_memory_limit()),
    Action("libraries", "Step into libraries…", (), "",
           "Choose packages whose Python is stepped into like the script's own, torch among them", "Run", _always,
           lambda w: w.debugging.ask_libraries()),
    Action("fork", "Go on from here", ("Ctrl+F5",), "restart",
           "Run the script, with what you edited, again up to this step, and go on from there as a fork", "Run",
           _has_program, lambda w: w.debugging.fork()),
    Action("leave_fork", "Back from the fork", ("Ctrl+Alt+F5",), "back",
           "Look at the run that this one was forked from", "Run", _always, lambda w: w.debugging.leave_fork()),
    Action("breakpoint", "Breakpoint", ("F9",), "",
           "Set or remove a breakpoint on the line of the text cursor", "Run", _always,
           lambda w: w.toggle_breakpoint()),
    Action("new_point", "New breakpoint…", ("Ctrl+F9",), "",
           "Stop at a line, an op, a tensor's change, or at what the machine does", "Run", _loaded,
           lambda w: w.debugging.ask_point()),
    Action("toggle_points", "All breakpoints on or off", ("Ctrl+Shift+F9",), "",
           "Let no breakpoint stop, or all again", "Run", _loaded, lambda w: w.session.points.toggle_all()),
    *_jumps("backward", "B", "Next backward", "Run until a backward pass begins",
            "Previous backward", "Go back to where the last backward pass began"),
    *_jumps("allocation", "A", "Next allocation", "Run until memory is allocated",
            "Previous allocation", "Go back to the last allocation"),
    *_jumps("copy", "C", "Next copy", "Run until a copy is silently made",
            "Previous copy", "Go back to the last copy that was silently made"),
    *_jumps("error", "E", "Next error", "Run until something fails", "Previous error", "Go back to the last failure"),
    Action("last_write", "Last write to this", ("Alt+W",), "",
           "Go back to the last write into what is selected", "Jump", _loaded, lambda w: w.debugging.to_last_write()),
    Action("next_read", "Who reads this next", ("Alt+R",), "",
           "Go on to the next op or node that reads what is selected", "Jump", _loaded,
           lambda w: w.debugging.to_next_read()),
    Action("birth", "Where this was born", ("Alt+O",), "",
           "Go to where what is selected was made", "Jump", _loaded, lambda w: w.debugging.to_birth()),
    Action("grain_line", "Steps are lines", ("Alt+1",), "",
           "A step is a line of your files", "Time", _always, lambda w: w.stepping.set_grain("line"), True),
    Action("grain_op", "Steps are ops", ("Alt+2",), "",
           "A step is one op, or one backward node", "Time", _always, lambda w: w.stepping.set_grain("op"), True),
    Action("grain_event", "Steps are events", ("Alt+3",), "",
           "A step is one decision inside an op", "Time", _always, lambda w: w.stepping.set_grain("event"), True),
    Action("play", "Play", ("Space",), "play",
           "Play the recording from here, or hold", "Time", _loaded, lambda w: w.stepping.toggle_play()),
    Action("earlier", "Earlier", ("Left",), "",
           "One stop back", "Time", _behind, lambda w: w.stepping.scrub(-1)),
    Action("later", "Later", ("Right",), "",
           "One stop ahead, as far as it is recorded", "Time", _loaded, lambda w: w.stepping.scrub(1)),
    Action("much_earlier", "Ten earlier", ("Shift+Left",), "",
           "Ten stops back", "Time", _behind, lambda w: w.stepping.scrub(-10)),
    Action("much_later", "Ten later", ("Shift+Right",), "",
           "Ten stops ahead", "Time", _loaded, lambda w: w.stepping.scrub(10)),
    Action("first", "Beginning", ("Home",), "",
           "Look at the first step", "Time", _behind, lambda w: w.stepping.look(0)),
    Action("last", "Now", ("End",), "",
           "Look at the newest step", "Time", _loaded, lambda w: w.stepping.look(w.time.head)),
    Action("faster", "Faster", ("+",), "",
           "Play faster", "Time", _always, lambda w: w.stepping.change_speed(1)),
    Action("slower", "Slower", ("-",), "",
           "Play slower", "Time", _always, lambda w: w.stepping.change_speed(-1)),
    Action("bookmark", "Bookmark", ("B",), "",
           "Put a flag at this step", "Time", _loaded, lambda w: w.bookmark()),
    Action("unselect", "Let go", ("Esc",), "",
           "Leave the full screen, else unpin the selection: show what the step is about", "View", _always,
           lambda w: w.let_go()),
    Action("maximise", "Fill the window", ("F12",), "expand",
           "Let the panel with the focus fill the window, or give it back", "View",
           _always, lambda w: w.toggle_maximised()),
    Action("present", "Present", ("P",), "",
           "Full screen without the toolbar and the panels larger, for a projector; Esc leaves it", "View",
           _always, lambda w: w.toggle_present()),
    Action("larger", "Larger", ("Ctrl+=", "Ctrl++"), "",
           "Show the panels larger", "View", _always, lambda w: w.zoom(1)),
    Action("smaller", "Smaller", ("Ctrl+-",), "",
           "Show the panels smaller", "View", _always, lambda w: w.zoom(-1)),
    Action("own_size", "Own size", ("Ctrl+0",), "",
           "Show the panels in their own size", "View", _always, lambda w: w.zoom(0)),
    Action("theme", "Next theme", ("Ctrl+Shift+T",), "",
           "Dark, light, high contrast", "View", _always, lambda w: w.toggle_theme()),
    Action("motion", "Reduce motion", (), "",
           "Skip all animations", "View", _always, lambda w: w.toggle_motion(), True),
    Action("language", "English / 中文", (), "",
           "Change the language", "View", _always, lambda w: w.toggle_language()),
    Action("palette", "All actions…", ("Ctrl+Shift+P", "Ctrl+K"), "",
           "Find an action by its name", "Help", _always, lambda w: w.show_palette()),
    Action("keys", "Keys", ("?",), "",
           "All keys", "Help", _always, lambda w: w.show_keys()),
)
# fmt: on
BY_ID = {action.id: action for action in ACTIONS}
MENUS = ("File", "Run", "Jump", "Time", "View", "Help")


def key_sign(action: Action) -> str:
    """Return the first key as it is written on keyboards: ``Shift+F10``."""
    return action.keys[0] if action.keys else ""


def title(action: Action) -> str:
    """Return the title in the current language."""
    return tr(action.title)
