"""Pages of the documentation: their samples as files and as cells, and running both."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cli_support import environment, write
from run_program import SUPPORT

ROOT = SUPPORT.parents[1]
SIMULATED = {"PYTORCH_MEMLAB_SIMULATE": "h100-80gb"}
_FENCE = re.compile(
    r"^(?:<!-- printed by: (?P<command>[^\n]*) -->\n)?```(?P<language>\S*)[^\n]*\n(?P<text>.*?)^```$", re.M | re.S
)
#: Runs the cells of a file in an IPython shell on a simulated GPU, as a notebook would.
_RUN_CELLS = """
import sys
from pathlib import Path
from pytorch_memlab_c import simulate
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

simulate.enable("h100-80gb")
config = Config({"HistoryManager": {"enabled": False}, "colors": "nocolor"})
shell = InteractiveShell.instance(config=config)
for cell in Path("cells").read_text().split("\\0"):
    shell.run_cell(cell, store_history=True).raise_error()
"""


@dataclass
class Block:
    """A fenced block; `command` prints it where the samples of the page do not."""

    language: str
    text: str
    command: str | None

    @property
    def file(self) -> str | None:
        """The file that a sample says it is, by its first line: `# train.py`."""
        named = re.match(r"# (\w+\.py)\n", self.text)
        return named[1] if named and self.language == "python" else None


@dataclass
class Page:
    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def prose(self) -> str:
        """The page without its fenced blocks."""
        return _FENCE.sub("", self.text)

    @property
    def blocks(self) -> list[Block]:
        return [Block(m["language"], m["text"], m["command"]) for m in _FENCE.finditer(self.text)]

    def of(self, language: str) -> list[Block]:
        return [block for block in self.blocks if block.language == language]

    @property
    def files(self) -> dict[str, str]:
        return {block.file: block.text for block in self.of("python") if block.file}

    @property
    def cells(self) -> list[str]:
        """All samples but files of tests, which pytest runs."""
        return [block.text for block in self.of("python") if not (block.file or "").startswith("test_")]

    @property
    def outputs(self) -> list[str]:
        """What the page shows of the output of its own samples."""
        return [block.text for block in self.of("text") if block.command is None]

    @property
    def commands(self) -> list[str]:
        """Lines of its `console` blocks, without comments."""
        lines = [line for block in self.of("console") for line in block.text.splitlines()]
        return [line.partition(" #")[0].strip() for line in lines]


PAGES = [Page(ROOT / "README.md"), *(Page(path) for path in sorted((ROOT / "docs").rglob("*.md")))]


def page(name: str) -> Page:
    (found,) = [page for page in PAGES if page.name == name]
    return found


def run(folder: Path, *words: str, **extra: str) -> str:
    """What a Python program prints, all of it, and its exit code."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment(**extra),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
    )
    return f"{without_spaces_at_ends(done.stdout)}\nexit code {done.returncode}\n"


def run_cells(page: Page, folder: Path) -> str:
    """The page's samples one after another, in one session."""
    files = {"train.py": "print('trained')\n", **page.files}
    write(folder, {"run_cells.py": _RUN_CELLS, "cells": "\0".join(page.cells), **files})
    return run(folder, "run_cells.py")


def run_files(page: Page, folder: Path) -> str:
    """Each sample that is a program, by itself, on the simulated GPU; each file of tests, by pytest."""
    write(folder, page.files)
    pytest = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
    return "".join(
        run(folder, *pytest, name) if name.startswith("test_") else run(folder, name, **SIMULATED)
        for name in page.files
    )


def run_command(command: str) -> str:
    """A command that a page names as the origin of an output: a Python program of the repository."""
    python, *words = shlex.split(command)
    assert python == "python" and (ROOT / words[0]).exists(), command
    return run(ROOT, *words)


def without_spaces_at_ends(text: str) -> str:
    return re.sub(r" +$", "", text, flags=re.MULTILINE)
