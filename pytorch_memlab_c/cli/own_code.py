"""The program's own code: its file, and the package or the folder that it belongs to, without installed libraries."""

from __future__ import annotations

import importlib.machinery
import os

from ..engine.program_lines import is_library
from .program import Module, Program


class OwnCode:
    """Modules in a folder, however deep, or those of one package."""

    def __init__(self, folder: str) -> None:
        self._folder = os.path.realpath(folder)
        self._is_package = os.path.isfile(os.path.join(self._folder, "__init__.py"))

    def may_have(self, module: str) -> bool:
        """Whether a module of this name can be the program's own. It is not looked for further."""
        root = module.partition(".")[0]
        if self._is_package:
            return root == os.path.basename(self._folder)
        path = os.path.join(self._folder, root)
        return os.path.isdir(path) or os.path.isfile(f"{path}.py")

    def has(self, filename: str) -> bool:
        """Whether code of this file is the program's own."""
        path = os.path.realpath(filename)
        return path.startswith(self._folder + os.sep) and not is_library(path)


def own_code(program: Program) -> OwnCode | None:
    """What belongs to a program that is about to run; None where that is its own file alone, as in a library."""
    folder = _folder_of_module(program.name) if isinstance(program, Module) else _folder_of_file(program.name)
    return None if folder is None or is_library(os.path.join(folder, "")) else OwnCode(folder)


def _folder_of_file(path: str) -> str | None:
    folder = os.path.realpath(path)
    return folder if os.path.isdir(folder) else _outermost_package(os.path.dirname(folder))


def _outermost_package(folder: str) -> str:
    """The topmost package that the folder is in, or the folder itself."""
    while os.path.isfile(os.path.join(os.path.dirname(folder), "__init__.py")):
        folder = os.path.dirname(folder)
    return folder


def _folder_of_module(name: str) -> str | None:
    """The outermost package of a module, or the folder of one that is in none. Nothing is imported."""
    try:
        spec = importlib.machinery.PathFinder.find_spec(name.partition(".")[0])
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return next(iter(spec.submodule_search_locations))
    return os.path.dirname(spec.origin) if spec.origin and spec.has_location else None
