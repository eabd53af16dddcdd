"""The progress bar: on a terminal, once reading takes more than a second, and only where tqdm is installed."""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import made_up_traces as made_up
import pytest

pty = pytest.importorskip("pty", reason="needs terminals of POSIX")
fcntl = pytest.importorskip("fcntl")
termios = pytest.importorskip("termios")
pytest.importorskip("tqdm", reason="tqdm is not installed")

#: Python without tqdm.
WITHOUT = "import sys; sys.modules['tqdm'] = None; from pytorch_memlab_c.cli import main; sys.exit(main())"


def feed(fifo: Path, data: bytes, seconds: float) -> None:
    """Write in ten pieces, over that time."""
    step = len(data) // 10 + 1
    with open(fifo, "wb", buffering=0) as file:
        for start in range(0, len(data), step):
            file.write(data[start : start + step])
            time.sleep(seconds / 10)


def shown(tmp_path: Path, words: list[str], seconds: float, terminal: bool = True) -> tuple[str, str]:
    """Standard output, and standard error as a terminal (or a pipe) has it, of a snapshot that comes slowly."""
    fifo = tmp_path / "slow.pickle"
    os.mkfifo(fifo)
    data = pickle.dumps(made_up.snapshot(made_up.leak()))
    feeder = threading.Thread(target=feed, args=(fifo, data, seconds), daemon=True)
    feeder.start()
    ours, theirs = pty.openpty() if terminal else os.pipe()
    if terminal:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with subprocess.Popen(
        [sys.executable, *words, "snapshot", str(fifo)], stdout=subprocess.PIPE, stderr=theirs, text=True
    ) as process:
        os.close(theirs)
        output = process.stdout.read()
        errors = b""
        try:
            while piece := os.read(ours, 65536):
                errors += piece
        except OSError:  # how a terminal ends
            pass
    os.close(ours)
    feeder.join()
    assert process.returncode == 0, errors
    return output, errors.decode()


def test_a_slow_file_gets_a_bar_that_is_taken_away_again(tmp_path: Path) -> None:
    output, errors = shown(tmp_path, ["-m", "pytorch_memlab_c"], 3)
    assert "active 172.00M" in output and "reading" not in output
    assert "reading: " in errors and "B/s" in errors
    assert errors.rpartition("reading: ")[2].rpartition("\r")[2].strip() == ""


@pytest.mark.parametrize(
    ("words", "seconds", "terminal"),
    [(["-m", "pytorch_memlab_c"], 0, True), (["-m", "pytorch_memlab_c"], 3, False), (["-c", WITHOUT], 3, True)],
    ids=["fast", "no terminal", "no tqdm"],
)
def test_otherwise_nothing_is_shown(tmp_path: Path, words: list[str], seconds: float, terminal: bool) -> None:
    output, errors = shown(tmp_path, words, seconds, terminal)
    assert "active 172.00M" in output and errors == ""
