"""Showing a report where the user is: as HTML in a notebook, as text elsewhere."""

from __future__ import annotations

import sys
from typing import Any

from .text import write_text


def show(display: Any) -> None:
    """In a notebook through IPython, which takes the HTML; elsewhere on standard output."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    if shell is not None and type(shell).__name__ != "TerminalInteractiveShell":
        from IPython.display import display as show_in_notebook

        show_in_notebook(display)
    elif sys.stdout is not None:
        write_text(sys.stdout, str(display))
