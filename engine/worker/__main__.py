"""The worker process: ``python -P -m stridescope.engine.worker ADDRESS``, started by a :class:`WorkerClient`.

ADDRESS is the number of an inherited socket, or HOST:PORT where sockets cannot be inherited. The first command over
it is :class:`~stridescope.engine.worker.protocol.Start`.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any

from stridescope.engine.recording.store import RecordingError
from stridescope.engine.worker import launch, protocol, streams
from stridescope.engine.worker.limits import limit_memory
from stridescope.engine.worker.program import LaunchError, Program, load
from stridescope.engine.worker.protocol import Ended, Failed, Reply, Running, Start
from stridescope.engine.worker.recorded import Detail, RecordedRun
from stridescope.engine.worker.stepper import Stepper

STOPPED = 143  # the status of a process that was asked to end, as a shell counts it
OUT_OF_MEMORY = 137
REFUSED = 2


class Channel:
    """The worker's end of the line to the window."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._lock = connection, threading.Lock()
        connection.set_inheritable(False)
        if hasattr(os, "register_at_fork"):  # a child that holds the line would hide the worker's end
            os.register_at_fork(after_in_child=connection.close)
        self._inbox = protocol.Inbox()

    def send(self, reply: Reply) -> None:
        """Send a reply; when nobody listens any more, :meth:`commands` ends too."""
        with self._lock, contextlib.suppress(OSError):
            self._connection.sendall(protocol.pack(reply))

    def commands(self) -> Iterator[Any]:
        """Yield commands until the other side hangs up."""
        while piece := self._receive():
            yield from self._inbox.feed(piece)

    def _receive(self) -> bytes:
        try:
            return self._connection.recv(1 << 16)
        except ConnectionError:  # hung up with something of ours unread
            return b""


class Worker:
    """Runs one program and serves the window beside it."""

    def __init__(self, channel: Channel, start: Start, run: RecordedRun) -> None:
        self._channel, self._start, self._run = channel, start, run
        self._stepper = Stepper(run.tracer, run.writer.flush, self._reply)
        self._stepper.past = self._past  # type: ignore[method-assign]
        self._input = streams.InputFeeder(self._want_input)
        self._reason = "finished"
        run.ended = lambda status: channel.send(Ended(status, self._reason))

    def work(self, commands: Iterator[Any]) -> int:
        """Run the program to its end and return its status."""
        faulthandler.enable(os.dup(2))
        streams.pump_descriptors()
        streams.record_output(pass_on=False)
        threading.Thread(target=self._serve, args=(commands,), name="stridescope-commands", daemon=True).start()
        if self._start.memory_limit:
            limit_memory(self._start.memory_limit, self._pass_limit)
        self._channel.send(Running(os.getpid()))
        return self._run.run(self._ready, self._stepper.fail if self._start.break_on_error else None)

    def _ready(self) -> None:
        self._stepper.install()
        if self._start.breakpoints:
            self._stepper.break_at(self._start.breakpoints, self._past)
        if self._start.until_step:
            self._stepper.run_to_step(self._start.until_step)
        elif self._start.break_on_start:
            self._stepper.break_at_start()

    def _want_input(self) -> None:
        """Tell the window that the script waits for input; what it printed before is in the recording by then."""
        self._run.writer.flush()
        self._channel.send(protocol.InputWanted())

    def _reply(self, reply: Reply) -> None:
        typed = self._stepper.console.typed
        if isinstance(reply, protocol.Evaluated) and typed:
            self._run.keep_console(typed)
        self._channel.send(reply)

    def _serve(self, commands: Iterator[Any]) -> None:
        """Serve commands in a thread of our own; those that need the script's thread are handed on."""
        for command in commands:
            match command:
                case protocol.Pause():
                    self._stepper.pause()
                case protocol.Stop():
                    self._end("stopped", "the script was stopped", STOPPED)
                case protocol.SetBreakpoints(breakpoints):
                    self._stepper.break_at(breakpoints, self._past)
                case protocol.SendInput(text, end):
                    self._input.send(text, end)
                case _:
                    self._stepper.ask(command)
        self._end("stopped", "the window was closed", STOPPED)

    def _pass_limit(self) -> None:
        limit = self._start.memory_limit
        self._end("memory", f"the script holds more memory than its limit of {limit} bytes", OUT_OF_MEMORY)

    def _end(self, reason: str, told: str, status: int) -> None:
        """End the process now, whatever the script is doing, with the recording complete."""
        self._reason = reason
        self._stepper.hold()
        self._run.cut(told, status)
        os._exit(status)

    @contextlib.contextmanager
    def _past(self) -> Iterator[Any]:
        """Open the recording as it is now, for breakpoints with a past; None where nothing was recorded."""
        from stridescope.engine.recording.reader import Recording

        self._run.writer.flush()
        with Recording.open(self._run.writer.path) as recording:
            yield recording if recording.steps else None


def _connect(address: str) -> socket.socket:
    if address.isdecimal():
        return socket.socket(fileno=int(address))
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)))


def _prepared(start: Start) -> RecordedRun:
    """Read the program, choose the device and make the recording; each can be refused with one clear line."""
    from stridescope.engine.devices import registry

    _go_to(start.folder)
    program = Program(start.path, start.argv, start.module)
    loaded = load(program)
    registry.configure(start.device)
    detail = Detail(start.keep_values, start.every_line, start.step_into)
    return RecordedRun(program, loaded, start.recording, detail)


def _go_to(folder: str) -> None:
    try:
        os.chdir(folder or os.curdir)
    except OSError as error:
        raise LaunchError(f"can't run in '{folder}': {error.strerror}") from None


def main() -> int:
    """Serve one :class:`Start`."""
    channel = Channel(_connect(sys.argv[1]))
    commands = channel.commands()
    start = next(commands)
    try:
        run = _prepared(start)
    except (LaunchError, RecordingError, ValueError) as error:
        channel.send(Failed(str(error)))
        return REFUSED
    return Worker(channel, start, run).work(commands)


if __name__ == "__main__":
    launch.leave(main())
