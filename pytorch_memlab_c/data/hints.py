"""What the user may have meant by a name that is unknown."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def similar(name: str, names: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """The three names most like it, the best first; `cutoff` from 0 (any) to 1 (the same)."""
    return difflib.get_close_matches(name, list(names), n=3, cutoff=cutoff)


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """A sentence to put after an error, with a space before it; empty if no name is like it."""
    found = similar(name, names)
    return f" Did you mean {' or '.join(map(repr, found))}?" if found else ""
