"""Lets a program on the simulated GPU end cleanly whatever its last statement is.

PyTorch's autograd threads release the last objects of a `backward()` after that call has returned, and need the GIL
for it. Python 3.13 and older end a thread that asks for the GIL while the interpreter shuts down; in the middle of
PyTorch's C++ code that aborts the process ("terminate called without an active exception"). On hardware the program
usually waits for its kernels first. Here they take no time, so programs whose last statement is `backward()` abort.

An autograd thread releases what it holds before it takes its next task. So at exit each of them gets one more: the
backward of an empty tensor, which allocates nothing, and whose every object the main thread still holds afterwards.
Releasing that one needs no GIL yet, so once the threads sleep they hold nothing.

Thread: the main one, in `atexit`, before the interpreter shuts down. `os._exit` and signals skip it.
"""

from __future__ import annotations

import atexit
import contextlib
import sys
import time
from pathlib import Path
from typing import Any

_registered = False
_kept: list[Any] = []  # the autograd threads must not be the last to hold one of these


def register() -> None:
    """Have the autograd threads finish when the interpreter exits; once, however often it is called.

    Handlers run in reverse order: register early, so that a backward in another handler comes first.
    """
    global _registered
    if not _registered:
        _registered = True
        atexit.register(_finish_autograd_threads)


def _finish_autograd_threads() -> None:
    torch = sys.modules.get("torch")
    if torch is None or not _autograd_thread_states():
        return
    # The program ends: whatever state it leaves PyTorch in, it gets no traceback from here.
    with contextlib.suppress(Exception):
        for device in range(torch.cuda.device_count()):
            _run_empty_backward(torch, f"cuda:{device}")
    _wait_until_autograd_sleeps()


def _autograd_thread_states() -> list[str]:
    """The scheduler's letter for each autograd thread. None: no backward has run on a device in this process."""
    lines = [_read_line(thread) for thread in Path("/proc/self/task").iterdir()]
    parts = [line.rpartition(")") for line in lines if "autograd" in line]
    return [after.split()[0] for _, _, after in parts]


def _read_line(thread: Path) -> str:
    """`number (name) state ...`; nothing of a thread that has ended."""
    try:
        return (thread / "stat").read_text()
    except OSError:
        return ""


def _run_empty_backward(torch: Any, device: str) -> None:
    with torch.inference_mode(False), torch.enable_grad(), torch.autograd.set_multithreading_enabled(True):
        leaf = torch.empty(0, device=device, requires_grad=True)
        root = leaf.view_as(leaf)
        gradient = torch.empty(0, device=device)
        _kept.extend((leaf, root, gradient))
        torch.autograd.backward(root, gradient)


def _wait_until_autograd_sleeps() -> None:
    """Waits at most two seconds: a program may still have a backward under way in a daemon thread."""
    asleep = 0
    end = time.monotonic() + 2
    while asleep < 2 and time.monotonic() < end:
        time.sleep(0.001)  # without the GIL: a thread that waits for it gets it here
        asleep = asleep + 1 if set(_autograd_thread_states()) <= {"S"} else 0
