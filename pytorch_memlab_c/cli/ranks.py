"""Which process of a job of several this one is, as torchrun says in the environment."""

from __future__ import annotations

import os


def rank() -> str:
    """Its number, in digits; empty where there is no such job."""
    return _digits("RANK")


def ranks() -> str:
    """How many there are."""
    return _digits("WORLD_SIZE")


def _digits(variable: str) -> str:
    text = os.environ.get(variable, "")
    return text if text.isdecimal() else ""
