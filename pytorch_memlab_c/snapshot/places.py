"""Which line a stack stands for: the innermost frame outside of PyTorch and of installed packages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from . import rows

#: Groups that are no line: what was there before, with no stack; and what has no Python frame.
BEFORE, NO_STACK = 0, 1
FRAMES = ("user", "torch", "all")

_NATIVE = re.compile(r"\.(c|cc|cpp|cxx|cu|cuh|h|hpp|so|S)(:|$)")
_TORCH = re.compile(r"[/\\](site-packages|dist-packages|pytorch)[/\\](torch|functorch|torchgen)[/\\]")
_INSTALLED = re.compile(
    r"[/\\](site-packages|dist-packages)[/\\]|[/\\]lib[/\\]python3[.\d]*[/\\]|[/\\]Python3\d+[/\\]Lib[/\\]", re.I
)
_GENERATED = re.compile(
    r"^<(frozen |string>|eval_with_key|pytorch_memlab_c |@beartype|__array_function__|attrs )|torchinductor_"
)
_OWN = re.compile(r"[/\\]pytorch_memlab_c[/\\](?!.*[/\\]tests[/\\])[^/\\]*(?:[/\\][^/\\]*)*\.py$")
#: Frames of the recording itself, at the inner end of stacks with C++ frames.
_RECORDING = re.compile(r"^(torch::unwind::|torch::CapturedTraceback::|torch::cuda::\(anonymous namespace\)::gather)")


class Place(NamedTuple):
    """A line of code; for the two groups that are none, ``kind`` says which, and the rest is empty."""

    kind: str  # "line", "before", "no stack"
    filename: str = ""
    line: int = 0
    function: str = ""


class Places:
    """The groups of all stacks of a snapshot: ``of_stack`` has the group of each, ``places`` what a group is."""

    def __init__(self, data: Any, frames: str = "user", skip: Sequence[str] = ()) -> None:
        self.names: list[str] = data.names()
        self.frames = numpy.frombuffer(data.frames(), rows.FRAME)
        self._stacks = numpy.frombuffer(data.stacks(), rows.STACK)
        self._members = numpy.frombuffer(data.members(), "u4")
        self._wanted = self._wanted_frames(frames, skip)
        chosen = self._chosen(frames)
        found, groups = numpy.unique(chosen[chosen >= 0], return_inverse=True)
        self.of_stack = numpy.full(len(chosen), NO_STACK, "u4")
        self.of_stack[chosen >= 0] = groups + 2
        self.places = [Place("before"), Place("no stack"), *(self.place_of_frame(frame) for frame in found)]

    def place_of_frame(self, frame: int) -> Place:
        """The line of a frame."""
        row = self.frames[frame]
        return Place("line", self.names[row["file"]], int(row["line"]), self.names[row["function"]])

    def calls(self, stack: int) -> list[int]:
        """The frames of a stack that are shown, the outermost first; all of them if none is the user's."""
        row = self._stacks[stack]
        members = self._members[int(row["first"]) : int(row["first"]) + int(row["count"])][::-1]
        shown = members[self._wanted[members]]
        return [int(frame) for frame in (shown if len(shown) else members)]

    def _kinds_of_files(self, skip: Sequence[str]) -> dict[int, str]:
        skipped = [re.compile(rf"[/\\]{re.escape(package)}([/\\.]|$)") for package in skip]
        kinds = {}
        for file in numpy.unique(self.frames["file"]):
            name = self.names[file]
            kinds[int(file)] = "skipped" if any(s.search(name) for s in skipped) else kind_of_file(name)
        return kinds

    def _wanted_frames(self, frames: str, skip: Sequence[str]) -> numpy.ndarray:
        """For each frame, whether a stack may be named after it."""
        kinds = self._kinds_of_files(skip)
        accepted = {
            "user": {"user"},
            "torch": {"user", "torch", "installed"},
            "all": {"user", "torch", "installed", "native"},
        }
        recording = {i for i, name in enumerate(self.names) if _RECORDING.match(name)}
        self._python = numpy.array([kinds[int(f)] not in ("native", "skipped") for f in self.frames["file"]], bool)
        return numpy.array(
            [
                kinds[int(f)] in accepted[frames] and int(n) not in recording
                for n, f in self.frames[["function", "file"]]
            ],
            bool,
        )

    def _chosen(self, frames: str) -> numpy.ndarray:
        """For each stack its frame, or -1. A stack with no frame of the wanted kind has its innermost one of Python."""
        chosen = self._first(self._wanted)
        for others in (self._python, numpy.ones(len(self.frames), bool)):
            chosen = numpy.where(chosen < 0, self._first(others), chosen)
        return chosen

    def _first(self, accepted: numpy.ndarray) -> numpy.ndarray:
        """For each stack the innermost frame that is accepted, or -1."""
        positions = numpy.flatnonzero(accepted[self._members]) if len(self.frames) else numpy.empty(0, int)
        starts = self._stacks["first"].astype("i8")
        ends = starts + self._stacks["count"]
        if not len(positions):
            return numpy.full(len(starts), -1, "i8")
        at = numpy.searchsorted(positions, starts)
        position = positions[numpy.minimum(at, len(positions) - 1)]
        inside = (at < len(positions)) & (position >= starts) & (position < ends)
        return numpy.where(inside, self._members[position].astype("i8"), -1)


def kind_of_file(name: str) -> str:
    """Whose code a file is: "user", "torch", "installed" or "native"."""
    if not name or name == "??" or _NATIVE.search(name):
        return "native"
    if _TORCH.search(name):
        return "torch"
    return "installed" if _INSTALLED.search(name) or _GENERATED.search(name) or _OWN.search(name) else "user"
