"""Dotted names as the user gives them."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence

from ..data.hints import similar
from .usage import UsageError


def checked_name(text: str, option: str) -> str:
    """A dotted name; `UsageError` says what is wrong with anything else."""
    if "(" in text:
        raise UsageError(f"{option} {text}: give the name alone, not a call: {option} {text.partition('(')[0]}")
    if "/" in text or text.endswith(".py"):
        raise UsageError(f"{option} {text}: give the name of a module, not its file; __main__ is the program's own")
    parts = text.replace("<locals>", "locals").split(".")
    if not all(part.isidentifier() for part in parts):
        raise UsageError(f"{option} {text!r}: give a dotted name, such as Net.forward or package.module")
    return text


def is_in(module: str, package: str) -> bool:
    """Whether it is the package itself, or a module in it."""
    return module == package or module.startswith(package + ".")


def can_be_imported(name: str) -> bool:
    """Whether there is such a module, for a name without dots. Nothing is imported."""
    if name in sys.modules or importlib.machinery.PathFinder.find_spec(name) is not None:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def similar_modules(name: str, names: Sequence[str]) -> list[str]:
    """Names much like it: there are thousands of modules."""
    return similar(name, names, cutoff=0.75)


def did_you_mean(names: Sequence[str]) -> str:
    """What to put after an error; nothing if there are no names."""
    return f"; did you mean {' or '.join(names[:3])}?" if names else ""
