"""The text of the lines, where their files are here; marked where a file is newer than the snapshot."""

from __future__ import annotations

import functools
import linecache
import os

from ..render.text import clean_code
from .places import Place

NEWER = "the file is newer than the snapshot"


@functools.lru_cache(maxsize=4096)
def _modified(filename: str) -> float:
    try:
        return os.path.getmtime(filename)
    except (OSError, ValueError):
        return 0.0


class SourceText:
    """Looks up lines as they were when the snapshot was taken, as far as that can be known."""

    def __init__(self, taken: float) -> None:
        self._taken = taken

    def of(self, place: Place) -> str:
        """The line's text, without its indentation; empty where there is none."""
        if place.kind != "line" or not place.line or not os.path.isabs(place.filename):
            return ""
        try:
            return clean_code(linecache.getline(place.filename, place.line).rstrip("\r\n")).strip()
        except Exception:  # a wrong coding cookie, a folder, a device
            return ""

    def is_newer(self, place: Place) -> bool:
        """Whether the file has been changed since: the text may be of another line."""
        return bool(self._taken) and place.kind == "line" and _modified(place.filename) > self._taken + 1

    def shown(self, place: Place) -> str:
        """The text as reports show it."""
        text = self.of(place)
        return f"{text}  ({NEWER})" if text and self.is_newer(place) else text
