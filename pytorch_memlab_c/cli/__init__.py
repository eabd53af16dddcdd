"""The command line: `python -m pytorch_memlab_c`, or `pytorch-memlab`."""

from .commands import main

__all__ = ["main"]
