"""Programs that tests start have the usual signals, also where the tests run under nohup or in the background."""

from __future__ import annotations

import signal
from pathlib import Path

from run_program import run_program

FROM_UNUSUAL = """
import os, signal, subprocess, sys
import inherited_signals
from program_support import report

unusual = [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD]
for number in unusual:
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, unusual)
inherited_signals.reset()
for number in unusual:
    os.kill(os.getpid(), number)
look = "print(*(line.split()[1] for line in open('/proc/self/status') if line.startswith(('SigBlk', 'SigIgn'))))"
report(words=subprocess.check_output([sys.executable, "-c", look], text=True).split())
"""


def signals(mask: str) -> set[int]:
    return {number for number in range(1, 65) if int(mask, 16) >> (number - 1) & 1}


def test_children_inherit_neither_ignored_nor_blocked_signals(tmp_path: Path) -> None:
    blocked, ignored = run_program(FROM_UNUSUAL, tmp_path).values["words"]
    assert signals(blocked) == set()
    own = {32, 33}  # the C library's, which the launcher's Python may have been given as ignored
    assert signals(ignored) - own == {signal.SIGPIPE, signal.SIGXFSZ}  # Python's own


def test_these_tests_have_it_done() -> None:
    ignored = {number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN}
    assert ignored <= {signal.SIGPIPE, signal.SIGXFSZ}
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()
