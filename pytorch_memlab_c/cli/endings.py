"""Doing something when the process ends: normally, by an exception, or by the signals that ask it to."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Literal

#: How the program ended: normally or with status 0, by an uncaught exception or another status, or by Ctrl-C.
Outcome = Literal["success", "failure", "interrupt"]
#: Signals whose default is to end the process at once: what a scheduler, `kill`, or a closed terminal sends.
_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def at_the_end(action: Callable[[], None]) -> None:
    """Call `action` once this process ends, after all that the program has asked for at its own end.

    Signals that would end the process still do, with the status of that signal. A program that handles one itself, and
    the processes that it forks, are left alone.
    """
    ending = _Ending(action)
    atexit.register(ending.act)
    ending.take_signals()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=ending.hold_signals, after_in_parent=ending.release_signals, after_in_child=ending.leave_child
        )


def outcome_of(error: BaseException) -> Outcome:
    """How a program ended that this exception left."""
    if type(error) is KeyboardInterrupt:  # a class derived from it is a failure, as for Python itself
        return "interrupt"
    return "success" if isinstance(error, SystemExit) and error.code in (None, 0) else "failure"


def end_process(outcome: Outcome, failed: bool) -> None:
    """At the very end of a program's process: make sure of its exit status.

    After Ctrl-C that is death by SIGINT. Python does that itself, but forgets it when code that runs at the end
    evaluates text, as libraries that write reports do. With `failed`, 0 becomes 1; another status stays.
    """
    if outcome == "interrupt":
        _flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    elif outcome == "success" and failed:
        _flush()
        os._exit(1)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()


class _Ending:
    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action
        self._home = os.getpid()
        self._thread = threading.local()

    def act(self) -> None:
        if os.getpid() == self._home:
            self._action()

    def take_signals(self) -> None:
        for number in _ENDING:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.act()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def hold_signals(self) -> None:
        """Around a fork they wait until the child has its own handlers: Python would drop one that came before."""
        self._thread.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)

    def release_signals(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._thread.mask)

    def leave_child(self) -> None:
        for number in _ENDING:
            if signal.getsignal(number) == self._on_signal:
                signal.signal(number, signal.SIG_DFL)
        self.release_signals()
