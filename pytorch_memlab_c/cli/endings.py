"""Doing something when the process ends: normally, by an exception, or by the signals that ask it to."""

from __future__ import annotations

import atexit
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

#: Signals whose default is to end the process at once: what a scheduler, `kill`, or a closed terminal sends.
_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def at_the_end(action: Callable[[], None]) -> None:
    """Call `action` once this process ends, after all that the program has asked for at its own end.

    Signals that would end the process still do, with the status that tells so. A program that handles one itself, and
    the processes that it forks, are left alone.
    """
    home = os.getpid()

    def act() -> None:
        if os.getpid() == home:
            action()

    def on_signal(number: int, frame: FrameType | None) -> None:
        act()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def let_go() -> None:
        for number in _ENDING:
            if signal.getsignal(number) is on_signal:
                signal.signal(number, signal.SIG_DFL)

    atexit.register(act)
    for number in _ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, on_signal)
    if hasattr(os, "register_at_fork"):
        _in_forked_children(let_go)


def _in_forked_children(let_go: Callable[[], None]) -> None:
    """Signals wait until the child has let go: Python would drop one that came before."""
    masks = threading.local()

    def hold() -> None:
        masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)

    def go_on() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, masks.before)

    def go_on_in_child() -> None:
        let_go()
        go_on()

    os.register_at_fork(before=hold, after_in_parent=go_on, after_in_child=go_on_in_child)
