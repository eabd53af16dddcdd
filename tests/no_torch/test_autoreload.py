"""Modules that are edited while a notebook runs: `%autoreload 2` compiles what has changed, and the table shows its
text."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from notebook_session import Session, session

from pytorch_memlab_c import LineProfiler, set_target_gpu
from pytorch_memlab_c.data.sources import source_of
from pytorch_memlab_c.engine import following

pytest.importorskip("IPython")

BEFORE = """
    from program_support import Block

    def work(size):
        block = Block(size)
        return block

    class Net:
        def forward(self, size):
            return Block(size)

        @property
        def size(self):
            return Block(10)
    """
AFTER = """
    from program_support import Block

    # A comment that moves all lines.

    def work(size):
        first = Block(size)

        # And one between them.
        second = Block(2 * size)
        return first, second

    def added(size):
        return Block(size)

    class Net:
        def forward(self, size):
            # A comment.
            return Block(
                size + 1
            )

        @property
        def size(self):
            # Another.
            return Block(11)

        def added(self, size):
            return Block(size + 2)

    class Added:
        # A comment.
        def method(self):
            return Block(5)
    """


class EditedModule:
    """A module on disk whose edits are seen however soon they follow each other."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._time = 1_000_000_000

    def write(self, text: str) -> None:
        self._path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        self._time += 10
        os.utime(self._path, (self._time, self._time))


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EditedModule]:
    monkeypatch.syspath_prepend(str(tmp_path))
    yield EditedModule(tmp_path / "edited_module.py")
    sys.modules.pop("edited_module", None)


@pytest.fixture
def notebook(only_made_up_bytes: None) -> Iterator[Session]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(following, "torch_module", lambda: None)
        with set_target_gpu("cpu"), session() as opened:
            opened.run("%load_ext autoreload\n%autoreload 2")
            yield opened
            opened.run("%autoreload 0")


def reload(notebook: Session, module: EditedModule) -> None:
    module.write(BEFORE)
    notebook.run("import edited_module")
    notebook.run("edited_module.work(100)")
    module.write(AFTER)
    notebook.run("edited_module")


CALLS = {
    "work": ("work(100)", {"def work(size):", "second = Block(2 * size)"}),
    "added": ("added(100)", {"def added(size):", "return Block(size)"}),
    "Net.forward": ("Net().forward(1)", {"def forward(self, size):"}),
    "Net.size": ("Net().size", {"def size(self):", "return Block(11)"}),
    "Net.added": ("Net().added(1)", {"def added(self, size):", "return Block(size + 2)"}),
    "Added.method": ("Added().method()", {"def method(self):", "return Block(5)"}),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_was_reloaded_has_its_text(notebook, module, name):
    reload(notebook, module)
    call, lines = CALLS[name]
    ran = notebook.run(f"%mlrun -q -r -f edited_module.{name} edited_module.{call}").value
    (function,) = ran.records().functions
    shown = dict(zip(range(function.first_line, function.first_line + 99), function.source))
    assert lines <= {text.strip() for text in function.source}
    for line in function.lines:
        assert shown[line.line].strip()
    assert any(line.hits and "Block(" in shown[line.line] for line in function.lines)


def test_the_report_says_why_lines_count_from_one(notebook, module):
    reload(notebook, module)
    text = notebook.run("%mlrun -f edited_module.work edited_module.work(100)").text
    frame_note = "note: work: reloaded by IPython's autoreload, which numbers the lines of a function from 1"
    if " 1  def work(size):" in text:  # not with versions that reload the whole module
        assert frame_note in text
    assert "second = Block(2 * size)" in text


def changed_function(module: EditedModule) -> Any:
    module.write(BEFORE)
    import edited_module

    module.write(AFTER)
    return edited_module.work


def test_a_file_that_was_edited_and_not_reloaded_is_named(module, only_made_up_bytes):
    profiler = LineProfiler(changed_function(module), device="cpu")
    with profiler:
        sys.modules["edited_module"].work(100)
    records = profiler.records()
    assert records.functions[0].source is None
    note = "work: edited_module.py has changed since it was loaded: its lines are shown without text"
    assert note in records.notes
    assert f"note: {note}\n" in records.to_text()


def test_code_that_never_had_a_file_is_not_said_to_have_changed(only_made_up_bytes):
    namespace: dict[str, Any] = {}
    exec("def work():\n    return 1\n", namespace)
    assert not [note for note in LineProfiler(namespace["work"]).records().notes if "changed" in note]


@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"])
def test_code_of_the_file_as_it_is_shows_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, future: str) -> None:
    """Whether or not autoreload is loaded, and a module is compiled with a future that is not its own."""
    monkeypatch.setitem(sys.modules, "IPython.extensions.autoreload", sys)
    text = f"{future}def f(a: int):\n    # kept\n    'é'  ;  return   a\n"
    (tmp_path / "as_it_is.py").write_text(text)
    for flags in (0, annotations.compiler_flag):
        compiled = compile(text, str(tmp_path / "as_it_is.py"), "exec", flags, dont_inherit=True)
        code = next(one for one in compiled.co_consts if isinstance(one, CodeType))
        assert source_of(code) == (code.co_firstlineno, text.removeprefix(future).splitlines())
