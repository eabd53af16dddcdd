"""An IPython shell inside the test's process: cells are run as a notebook runs them, on made-up memory."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from run_program import cells

COLORS = re.compile(r"\x1b\[[0-9;]*m")


class Session:
    """What a user does: run cells. `Block`, `allocate` and `free` of program_support.py are there."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.names: dict[str, Any] = shell.user_ns
        self.run("from program_support import Block, allocate, free")
        self.run("%load_ext pytorch_memlab_c")

    def run(self, cell: str) -> SimpleNamespace:
        """Run a cell that succeeds: `value`, `text` (all output) and `tables` (text of each table displayed)."""
        outcome = self.attempt(cell)
        assert outcome.error is None, outcome.text
        return outcome

    def attempt(self, cell: str) -> SimpleNamespace:
        """Run a cell; `error` is its exception."""
        from IPython.utils.capture import capture_output

        with capture_output() as captured:
            result = self.shell.run_cell(cell, store_history=True)
        tables = [o.data["text/plain"] for o in captured.outputs if "text/html" in o.data]
        text = captured.stdout + captured.stderr + "".join(tables)
        error = result.error_before_exec or result.error_in_exec
        return SimpleNamespace(value=result.result, text=COLORS.sub("", text), tables=tables, error=error)

    def usage_error(self, cell: str) -> str:
        """The one line that a wrong call is answered with."""
        outcome = self.attempt(cell)
        assert type(outcome.error).__name__ == "UsageError", outcome.text
        (line,) = outcome.text.splitlines()
        return line

    def forget_values(self) -> None:
        """Drop what the shell keeps: results, and the variables of failed code."""
        sys.last_value = sys.last_traceback = None
        self.shell.displayhook.flush()
        for name in ("_", "__", "___"):
            self.shell.user_ns_hidden.pop(name, None)


@contextmanager
def session() -> Iterator[Session]:
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    kept = (
        sys.modules.get("__main__"),
        {name: vars(builtins).get(name) for name in ("display", "__IPYTHON__", "_")},
    )
    prompts = vars(sys).keys() & {"ps1", "ps2", "ps3"}
    vars(builtins).pop("_", None)  # left by a doctest: with it there, IPython leaves the user's `_` alone
    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}, "colors": "nocolor"}))
    try:
        yield Session(shell)
    finally:
        shell.restore_sys_module_state()
        InteractiveShell.clear_instance()
        if kept[0] is not None:
            sys.modules["__main__"] = kept[0]
        for prompt in {"ps1", "ps2", "ps3"} & vars(sys).keys() - prompts:
            delattr(sys, prompt)
        for name, value in kept[1].items():
            vars(builtins).pop(name, None) if value is None else vars(builtins).update({name: value})


def row(table: str, code: str, of: str | None = None) -> list[str]:
    """The values in the row of a line: peak, net and hits. `of`: the title, where several tables show the line."""
    sections = re.split(r"^(?=## )", table, flags=re.MULTILINE)
    return cells("".join(s for s in sections if of is None or s.startswith(f"## {of}\n")), code)
