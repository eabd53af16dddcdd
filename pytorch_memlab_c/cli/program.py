"""The program under the profiler: found, and run as `__main__` as Python itself would run it.

https://docs.python.org/3/using/cmdline.html#interface-options says what a program sees of how it was started.
"""

from __future__ import annotations

import builtins
import importlib.machinery
import importlib.util
import os
import pkgutil
import sys
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType, TracebackType
from typing import Any

from .usage import UsageError

_PACKAGE = __name__.partition(".")[0]


class Program:
    """A program that can be run once.

    `enter` puts `sys.argv`, `sys.path` and `__main__` in its place, `load` gives its code, `run` runs it. Errors of
    these are the program's own, except `UsageError`.
    """

    #: The package that its relative imports start from.
    package: str | None = None

    def __init__(self, name: str, arguments: list[str]) -> None:
        self.name = name
        self.arguments = arguments
        self.main = ModuleType("__main__")
        self.main.__dict__.update(__annotations__={}, __builtins__=builtins)

    def enter(self) -> None:
        """Set `sys.argv`, `sys.path` and `__main__` as Python does."""
        sys.argv[:] = [self._first_argument(), *self.arguments]
        safe = getattr(sys.flags, "safe_path", False) or sys.flags.isolated
        if not safe:
            sys.path[:1] = [self._folder()]
        sys.modules["__main__"] = self.main

    def load(self) -> CodeType:
        """Find and compile the program.

        Raises:
            UsageError: there is no such program.
        """
        raise NotImplementedError

    def source(self) -> str | bytes | None:
        """The text of the code that `load` gave, if there is one."""
        get = getattr(self.main.__loader__, "get_source", None)
        try:
            return get(self._name_at_loader()) if get is not None else None
        except (ImportError, SyntaxError, UnicodeDecodeError):
            return None

    def run(self, code: CodeType) -> None:
        """Run the program's code as `__main__`; its exceptions pass through."""
        exec(code, self.main.__dict__)

    def _folder(self) -> str:
        """What `sys.path` starts with."""
        raise NotImplementedError

    def _first_argument(self) -> str:
        return self.name

    def _name_at_loader(self) -> str:
        return self.main.__spec__.name if self.main.__spec__ is not None else "__main__"

    def _take_spec(self, spec: ModuleSpec) -> CodeType:
        self.main.__dict__.update(
            __file__=spec.origin,
            __cached__=spec.cached,
            __loader__=spec.loader,
            __package__=spec.parent,
            __spec__=spec,
        )
        loader: Any = spec.loader
        code: CodeType | None = loader.get_code(spec.name) if hasattr(loader, "get_code") else None
        if code is None:
            raise UsageError(f"{spec.name!r} has no Python code to run")
        return code


class Script(Program):
    """`python script.py`."""

    def _folder(self) -> str:
        return os.path.dirname(os.path.realpath(self.name))

    def load(self) -> CodeType:
        """As `Program.load`."""
        path = os.path.abspath(self.name)
        compiled = path.endswith(".pyc")
        kind = importlib.machinery.SourcelessFileLoader if compiled else importlib.machinery.SourceFileLoader
        loader = kind("__main__", path)
        self.main.__dict__.update(__file__=path, __cached__=None, __loader__=loader)
        if compiled:
            code = loader.get_code("__main__")
            assert code is not None
            return code
        try:
            text = loader.get_data(path)
        except OSError as error:
            raise UsageError(f"can't open file {self.name!r}: {error.strerror}") from None
        return compile(text, path, "exec", dont_inherit=True)

    def source(self) -> str | bytes | None:
        """As `Program.source`; a `.pyc` file has no source."""
        return None if self.name.endswith(".pyc") else super().source()


class Archive(Program):
    """`python folder` and `python file.zip`, with a `__main__.py` in it."""

    def _folder(self) -> str:
        return os.path.abspath(self.name)

    def enter(self) -> None:
        """As `Program.enter`; Python adds the folder also in its safe mode."""
        super().enter()
        if sys.path[:1] != [self._folder()]:  # Python needs it even in its safe mode
            sys.path.insert(0, self._folder())

    def load(self) -> CodeType:
        """As `Program.load`."""
        spec = importlib.machinery.PathFinder.find_spec("__main__", [self._folder()])
        if spec is None:
            raise UsageError(f"can't find '__main__' module in {self.name!r}")
        self.package = ""
        return self._take_spec(spec)


class Module(Program):
    """`python -m module`."""

    def _folder(self) -> str:
        return os.getcwd()

    def _first_argument(self) -> str:
        return "-m"  # until its file is known

    def load(self) -> CodeType:
        """As `Program.load`."""
        spec = self._spec_to_run()
        self.package = spec.parent
        if spec.origin is not None:
            sys.argv[0] = spec.origin
        return self._take_spec(spec)

    def _spec_to_run(self) -> ModuleSpec:
        spec = _find_module(self.name)
        if spec.submodule_search_locations is None:
            return spec
        try:
            return _find_module(f"{self.name}.__main__")
        except UsageError:
            raise UsageError(f"{self.name!r} is a package and has no module '__main__' to run") from None


def _find_module(name: str) -> ModuleSpec:
    """Imports the packages that it is in."""
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name + ".").startswith(error.name + "."):
            raise  # a module that the package needs
        spec = None
    except ValueError:  # it is imported already, and has no spec
        spec = None
    if spec is None:
        raise UsageError(f"there is no module named {name!r}")
    return spec


def find_program(script: list[str], module: list[str] | None) -> Program:
    """The program of a command line: the script or, after `-m`, the module, and its arguments."""
    if module is not None:
        if not module:
            raise UsageError("-m needs the name of a module")
        if module[0].startswith(("-", ".")) or module[0].endswith(".py"):
            raise UsageError(f"-m {module[0]}: give a module's name, such as package.train; a file goes without -m")
        return Module(module[0], module[1:])
    words = script[1:] if script[:1] == ["--"] else script
    if not words:
        raise UsageError("nothing to run: give a script, or -m and a module")
    path = words[0]
    if not os.path.exists(path):
        raise UsageError(f"can't open file {path!r}: there is no such file")
    is_archive = not path.endswith(".pyc") and pkgutil.get_importer(os.path.abspath(path)) is not None
    return (Archive if is_archive else Script)(path, words[1:])


def hide_our_frames(error: BaseException) -> None:
    """Before an uncaught exception is passed on: what reports it is to see a traceback that begins in the program."""
    if isinstance(error, SystemExit):  # not reported, and its traceback is not to be kept
        return
    traceback = _program_part(error.__traceback__)
    report = sys.excepthook

    def excepthook(kind: type[BaseException], value: BaseException, _: TracebackType | None) -> None:
        sys.excepthook = report
        sys.last_traceback = traceback
        report(kind, value.with_traceback(traceback), traceback)

    sys.excepthook = excepthook


def _program_part(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and _is_ours(traceback.tb_frame.f_globals.get("__name__")):
        traceback = traceback.tb_next
    return traceback


def _is_ours(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in (_PACKAGE, "importlib")
