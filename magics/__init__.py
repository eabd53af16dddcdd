"""`%mlrun` and `%%mlrun`, loaded by `%load_ext pytorch_memlab_c`. IPython is imported only then."""

from __future__ import annotations

from typing import Any


def load_ipython_extension(shell: Any) -> None:
    """Give `shell` the magics, their completions, and what their calls need in the text of cells."""
    from . import calls, completion
    from .mlrun import MlrunMagics

    shell.register_magics(MlrunMagics)
    completion.install(shell)
    calls.install(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Take away what `load_ipython_extension` gave; without it nothing happens."""
    from . import calls, completion

    calls.remove(shell)
    completion.remove(shell)
    ours = shell.magics_manager.registry.pop("MlrunMagics", None)
    for magics in shell.magics_manager.magics.values():
        if ours is not None and getattr(magics.get("mlrun"), "__self__", None) is ours:
            del magics["mlrun"]
