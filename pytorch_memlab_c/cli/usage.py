"""Errors that the user can correct: reported in one line, exit status 2."""

from __future__ import annotations

import argparse
from typing import NoReturn

from ..render.text import clean


class UsageError(Exception):
    """What the user asked for cannot be done; the message says what to do instead."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print the error in one line and exit with status 2."""
        self.exit(2, f"{self.prog}: error: {clean(message)} (see {self.prog} --help)\n")


def one_line(error: Exception) -> str:
    """What the error says, without the list of all columns: at a shell that would fill the screen."""
    text, listed, _ = str(error).partition(" Valid columns: ")
    own = (
        "hits, net.last, net.total, net.max, allocated, tensor_bytes.peak, the keys of torch.cuda.memory_stats(), "
        "and others in docs/columns.md"
    )
    return f"{text} Valid are {own}" if listed else text
