"""README.md's samples run word for word and print what it shows; docs/architecture.md has each file in a room."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from cli_support import environment, write

ROOT = Path(__file__).parents[2]
HOME = "https://github.com/pytorch-memlab-c/pytorch-memlab-c/blob/main/"
README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
#: Runs the cells of a file in an IPython shell on a simulated GPU, as a notebook would.
RUN_CELLS = """
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


def blocks(language: str) -> list[str]:
    """The fenced blocks of that language ("": output) in README.md."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
    return [block for of, block in fenced if of == language]


def shown(start: str) -> str:
    """The block of output that begins so."""
    (block,) = [block for block in blocks("") if block.startswith(start)]
    return block


def sample(name: str) -> str:
    """The sample that begins with the name of its file."""
    (block,) = [block for block in blocks("python") if block.startswith(f"# {name}\n")]
    return block


def run(folder: Path, *words: str, **extra: str) -> str:
    """What a program prints, all of it."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment(**extra),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
    )
    return f"{done.stdout}\nexit code {done.returncode}\n"


def without_spaces_at_ends(text: str) -> str:
    return re.sub(r" +$", "", text, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def gpu() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    import gpu_device

    if reason := gpu_device._reason_to_skip():
        pytest.skip(reason)


@pytest.mark.simcuda
@pytest.mark.parametrize(
    ("name", "start"), [("outer.py", "## outer\n"), ("tensors.py", "Element type")], ids=["outer", "tensors"]
)
def test_sample_prints_what_is_shown(gpu: None, tmp_path: Path, name: str, start: str) -> None:
    write(tmp_path, {name: sample(name)})
    text = run(tmp_path, name, PYTORCH_MEMLAB_SIMULATE="h100-80gb")
    assert "exit code 0" in text, text
    assert shown(start) in without_spaces_at_ends(text)


def test_sample_of_a_limit_prints_what_is_shown(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    write(tmp_path, {"test_train.py": sample("test_train.py")})
    text = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_train.py")
    assert "1 failed" in text
    if not metadata.version("torch").startswith("2.14."):
        pytest.skip("the figures in README.md are those of PyTorch 2.14")
    assert shown("limit_tensor_memory") in without_spaces_at_ends(text)


@pytest.mark.simcuda
def test_all_samples_run_in_their_order(gpu: None, tmp_path: Path) -> None:
    pytest.importorskip("IPython", reason="IPython is not installed")
    samples = [block for block in blocks("python") if "pytest" not in block]
    assert len(samples) > 8
    write(tmp_path, {"run_cells.py": RUN_CELLS, "cells": "\0".join(samples), "train.py": "print('trained')\n"})
    text = run(tmp_path, "run_cells.py")
    assert "exit code 0" in text, text
    plain = without_spaces_at_ends(text)
    assert shown("## Lines that keep more memory") in plain
    assert shown("## Saved for backward") in plain


COMMANDS = [line.partition(" #")[0].strip() for block in blocks("console") for line in block.splitlines()]
TRAIN = """\
from package import data, models

class Net:
    def forward(self):
        kept = data.collate()
        return models.layer()

Net().forward()
"""
MADE_UP = "from program_support import Block\n\ndef {}():\n    return Block(100)\n"
PROGRAM = {
    "train.py": TRAIN,
    "package/__init__.py": "",
    "package/train.py": TRAIN,
    "package/data.py": MADE_UP.format("collate"),
    "package/models.py": MADE_UP.format("layer"),
}


def test_commands_run(tmp_path: Path) -> None:
    """On made-up memory; `simulate` needs PyTorch, and is the samples' own way to a GPU. torchrun gives ranks by RANK."""
    ours = [command.split()[1:] for command in COMMANDS if command.startswith("pytorch-memlab")]
    assert {words[0] for words in ours} == {"run", "simulate", "report", "diff", "merge", "rss"}
    write(tmp_path, PROGRAM)
    made = [("before.json", ""), ("after.json", ""), ("report.json", "0"), ("report.json", "1")]
    for name, rank in made:
        run(tmp_path, "-m", "pytorch_memlab_c", "run", "-o", name, "train.py", **{"RANK": rank} if rank else {})
    for words in [words for words in ours if words[0] != "simulate"]:
        files = {word: [path.name for path in sorted(tmp_path.glob(word))] for word in words if "*" in word}
        shell = [sys.executable if word == "python" else word for item in words for word in files.get(item, [item])]
        text = run(tmp_path, "-m", "pytorch_memlab_c", *shell)
        assert "exit code 0" in text and "never" not in text, f"{words}\n{text}"


def test_targets_of_make_exist() -> None:
    named = set(re.findall(r"make ([a-z]\w*)", "\n".join(blocks("console")) + "".join(re.findall("`[^`]*`", README))))
    targets = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert named and named <= targets


def anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {"#" + re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    "path", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/architecture.md", "docs/measurements.md"]
)
def test_links_lead_somewhere(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)]+)\)", text):
        file, _, heading = target.removeprefix(HOME).partition("#")
        folder = ROOT if target.startswith(HOME) else (ROOT / path).parent
        found = folder / file if file else ROOT / path
        assert found.exists(), target
        assert not heading or f"#{heading}" in anchors(found.read_text(encoding="utf-8")), target
    assert len(anchors(text)) == len(re.findall(r"^#+ ", re.sub(r"(?ms)^```.*?^```$", "", text), re.MULTILINE))


def rooms() -> Iterator[tuple[Path, str]]:
    """Each folder that docs/architecture.md gives a room, with the text of the room."""
    text = ARCHITECTURE.partition("## Rooms")[2].partition("\n## ")[0]
    for room in re.split(r"^(?=`[\w/]+/`)", text, flags=re.MULTILINE)[1:]:
        folder = re.match(r"`([\w/]+)/`", room)
        assert folder is not None
        yield ROOT / folder[1], room


def test_every_file_has_one_place_in_its_room() -> None:
    named: dict[Path, list[str]] = {}
    for folder, room in rooms():
        named.setdefault(folder, []).extend(re.findall(r"`(\w+\.(?:c|py))`", room))
    for folder, names in named.items():
        there = {path.name for path in folder.iterdir() if path.suffix in (".c", ".py") and path.name[:2] != "__"}
        assert sorted(names) == sorted(there), folder
    packages = {path.parent for path in (ROOT / "pytorch_memlab_c").rglob("*.py")}
    assert packages <= named.keys() | {ROOT / "pytorch_memlab_c"}


def test_counting_core_includes_no_python() -> None:
    (core,) = [room for folder, room in rooms() if "no Python.h" in room]
    for name in re.findall(r"`(\w+\.c)`", core):
        assert not re.search(r'#include.*(Python|compat|state)\.h[">]', (ROOT / "native" / name).read_text()), name


def test_decisions_are_numbered_in_order() -> None:
    numbers = re.findall(r"^(\d+)\. \*\*", ARCHITECTURE.partition("## Decisions")[2], flags=re.MULTILINE)
    assert numbers == [str(number) for number in range(1, len(numbers) + 1)]


def imported() -> set[str]:
    """The top-level modules that the package's files import, but its own and Python's."""
    found = set()
    for path in [*(ROOT / "pytorch_memlab_c").rglob("*.py"), *(ROOT / "magics").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(node.module or "")
    return {name.partition(".")[0] for name in found} - sys.stdlib_module_names - {"pytorch_memlab_c"}


def test_what_is_imported_is_declared() -> None:
    """PyTorch and others of a user's own choice as extras."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    needed = re.findall(r'"(\w+)>', project.partition("\ndependencies")[2].partition("\n")[0])
    optional = re.findall(r'"(\w+)>', project.partition("[project.optional-dependencies]")[2].partition("\n\n")[0])
    assert set(needed) | set(optional) == {name.lower() for name in imported()}
