"""Gives programs that tests start the usual signals, whatever this process was started with.

`nohup` has SIGHUP ignored, `&` in a script SIGINT, and some supervisors block signals; children inherit all of that.
"""

from __future__ import annotations

import signal

#: Python itself ignores these, and `subprocess` restores them.
_OF_PYTHON = {signal.SIGPIPE, signal.SIGXFSZ}


def reset() -> None:
    """Children start with no signal blocked, and none ignored.

    This process goes on ignoring what it ignored: by a handler that does nothing, which no program inherits.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in signal.valid_signals() - _OF_PYTHON:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, _ignore)


def _ignore(number: int, frame: object) -> None:
    pass
