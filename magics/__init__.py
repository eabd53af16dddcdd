"""`%mlrun`, `%%mlrun` and `%mlkeepers`, loaded by `%load_ext pytorch_memlab_c`. IPython is imported only then."""

from __future__ import annotations

from typing import Any


def load_ipython_extension(shell: Any) -> None:
    """Give `shell` the magics, their completions, and what their calls need in the text of cells."""
    from . import calls, completion
    from .mlkeepers import MlkeepersMagics
    from .mlrun import MlrunMagics

    shell.register_magics(MlrunMagics, MlkeepersMagics)
    completion.install(shell)
    calls.install(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Take away what `load_ipython_extension` gave; without it nothing happens."""
    from . import calls, completion

    calls.remove(shell)
    completion.remove(shell)
    for name in ("mlrun", "mlkeepers"):
        ours = shell.magics_manager.registry.pop(f"{name.capitalize()}Magics", None)
        for magics in shell.magics_manager.magics.values():
            if ours is not None and getattr(magics.get(name), "__self__", None) is ours:
                del magics[name]
