"""Where chains begin: at variables that a person knows, and then at all other modules.

Nothing of the program's code runs: variables are read from frames and from modules' dicts.
"""

from __future__ import annotations

import inspect
import re
import sys
import threading
from collections.abc import Iterable, Iterator
from types import FrameType, GetSetDescriptorType, ModuleType
from typing import Any, NamedTuple

from .. import _native
from ..data.sources import file_label, qualname_of
from ..engine.program_lines import is_library
from .insides import attributes_of
from .variables import all_running_frames, is_ours, locals_of, name_of_type, namespace_of, root_of, running_frames

_PACKAGE = __name__.partition(".")[0]
_LIBRARIES = {*sys.stdlib_module_names, "torch", "numpy", "IPython", _PACKAGE} - {"__main__"}
#: Names that IPython gives to results, which are in `Out` as well, and those of its own.
_RESULT = re.compile(r"_{1,3}|_\d+")
_OF_NOTEBOOK = re.compile(r"_{1,3}|_\d+|_i+|_i\d+|_(oh|ih|dh)|In|Out|exit|quit|get_ipython")
_FREES_CYCLES = "gc.collect()"
_FREES_RESULTS = "%reset -f out"
_LAST = ("last_exc", "last_value", "last_traceback")


class Root(NamedTuple):
    """A value that is alive by itself: its name, and where that is one (``local of train at train.py:31``).

    ``frees``: what frees it, where that is no assignment to a variable.
    """

    value: Any
    name: str
    where: str = ""
    frees: str = ""


class Roots:
    """All roots, in the order in which they are preferred. Holds their values: it is made and dropped in one report."""

    def __init__(self, contexts: Iterable[Any] = ()) -> None:
        self.frames = list(all_running_frames())
        self._main = sys.modules.get("__main__")
        self._modules = [(name, one) for name, one in list(sys.modules.items()) if isinstance(one, ModuleType)]
        self._out: list[Any] = []
        self.named: dict[int, list[Root]] = {}
        self.contexts = list(contexts)
        self.variables: list[Any] = []
        for root in self._variables():
            self.named.setdefault(id(root.value), []).append(root)
            self.variables.append(root.value)
        self.namespaces = list(self._library_namespaces())

    @property
    def groups(self) -> tuple[list[Any], ...]:
        """For `find_chains`: variables, the namespaces of libraries, and what autograd functions keep."""
        return self.variables, self.namespaces, self.contexts

    @property
    def ours(self) -> list[Any]:
        """Through which no chain leads: what runs, and what only leads to roots."""
        namespaces = [namespace_of(one) for name, one in self._modules if not _is_library(name, one) or _is_own(name)]
        modules: list[Any] = [one for _, one in self._modules]
        return [*self.frames, *modules, *namespaces, *self._out, sys.modules, self, self.__dict__, self.named]

    def _variables(self) -> Iterator[Root]:
        frames = list(running_frames())
        yield from _of_frames(frame for frame in frames if not is_library(frame.f_code.co_filename))
        for name, module in self._user_modules():
            yield from self._of_module(name, module)
        yield from _of_sys()
        yield from _of_threads()
        yield from _of_frames(frame for frame in frames if is_library(frame.f_code.co_filename))
        yield from self._of_unnamed_modules()

    def _user_modules(self) -> Iterator[tuple[str, ModuleType]]:
        """`__main__` first."""
        users = [(name, one) for name, one in self._modules if not _is_library(name, one)]
        main = [("__main__", self._main)] if isinstance(self._main, ModuleType) else []
        yield from main
        yield from ((name, one) for name, one in users if one is not self._main)

    def _of_module(self, name: str, module: ModuleType) -> Iterator[Root]:
        variables = list(namespace_of(module).items())
        notebook = dict(variables).get("_oh") if name == "__main__" else None
        if type(notebook) is not dict:
            where = f"global of {_name_of_module(name, module)}"
            yield from (Root(value, key, where) for key, value in variables if key != "__builtins__")
            return
        self._out.append(notebook)
        yield from (Root(value, key, "of the notebook") for key, value in variables if not _OF_NOTEBOOK.fullmatch(key))
        yield from (
            Root(value, f"Out[{key}]", "", _FREES_RESULTS) for key, value in list(notebook.items()) if type(key) is int
        )
        hidden = [pair for pair in variables if _OF_NOTEBOOK.fullmatch(pair[0]) and pair[1] is not notebook]
        for key, value in hidden:
            yield Root(value, key, "of the notebook", _FREES_RESULTS if _RESULT.fullmatch(key) else "")

    def _of_unnamed_modules(self) -> Iterator[Root]:
        """Global variables of code that runs in no known module, as `exec` and `runpy` do it."""
        known = {id(namespace_of(one)) for _, one in self._modules}
        for frame in self.frames:
            if id(frame.f_globals) not in known and not is_ours(frame):
                known.add(id(frame.f_globals))
                where = f"global of {file_label(frame.f_code.co_filename)}"
                yield from (Root(value, key, where) for key, value in list(frame.f_globals.items()))

    def _library_namespaces(self) -> Iterator[dict[str, Any]]:
        for name, module in self._modules:
            if _is_library(name, module) and not _is_own(name):
                namespace = namespace_of(module)
                self.named.setdefault(id(namespace), []).append(Root(None, name))
                yield namespace


def _of_frames(frames: Iterable[FrameType]) -> Iterator[Root]:
    for frame in frames:
        if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            yield from (Root(value, name, local_of(frame)) for name, value in locals_of(frame))


def local_of(frame: FrameType) -> str:
    """Where a local variable is one: the function, and the line where it is."""
    code = frame.f_code
    return f"local of {qualname_of(code)} at {file_label(code.co_filename)}:{frame.f_lineno or code.co_firstlineno}"


def _of_sys() -> Iterator[Root]:
    """The last exception that nothing caught, and those that are handled now."""
    namespace, in_notebook = namespace_of(sys), _traceback_of_notebook()
    last = [(name, namespace[name]) for name in _LAST if namespace.get(name) is not None]
    frees = "; ".join([*(f"del sys.{name}" for name, _ in last), *in_notebook, _FREES_CYCLES])
    kind = next((name_of_type(value) for _, value in last if isinstance(value, BaseException)), "")
    yield from (Root(value, f"sys.{name}" + (f" ({kind})" if kind else ""), "", frees) for name, value in last)
    yield from (Root(value, name.partition(" ")[0], "", frees) for name, value in in_notebook.items())
    for handled in sys._current_exceptions().values():  # from Python 3.12 on the exception, before a tuple
        error = handled[1] if isinstance(handled, tuple) else handled
        if error is not None:
            yield Root(error, f"the {name_of_type(error)} that is being handled")


def _traceback_of_notebook() -> dict[str, Any]:
    """The traceback that IPython keeps beside `sys.last_traceback`, by what frees it."""
    module = sys.modules.get("IPython.core.interactiveshell")
    value = getattr(getattr(module, "InteractiveShell", None), "_instance", None)
    for name in ("InteractiveTB", "tb"):
        value = (attributes_of(value) or {}).get(name)
    return {} if value is None else {"get_ipython().InteractiveTB.tb = None": value}


def _of_threads() -> Iterator[Root]:
    """What a thread was given to run."""
    for thread in list(namespace_of(threading).get("_active", {}).values()):
        name = object.__getattribute__(thread, "__dict__").get("_name", "?")
        yield Root(thread, f"thread {name}" if type(name) is str else "a thread", "", "the end of the thread")


def _name_of_module(name: str, module: ModuleType) -> str:
    file = namespace_of(module).get("__file__")
    return file_label(file) if name == "__main__" and type(file) is str else name


def _is_own(name: str) -> bool:
    return root_of(name) == _PACKAGE


def _is_library(name: str, module: ModuleType) -> bool:
    file = namespace_of(module).get("__file__")
    return name != "__main__" and (root_of(name) in _LIBRARIES or (type(file) is str and is_library(file)))


def base_of_arrays() -> GetSetDescriptorType | None:
    """The attribute by which a NumPy array holds the tensor whose memory it shows: the collector does not know it."""
    array = getattr(sys.modules.get("numpy"), "ndarray", None)
    base = array.__dict__.get("base") if isinstance(array, type) else None
    return base if isinstance(base, GetSetDescriptorType) else None


def optimizers(torch: Any) -> list[Any]:
    """They hold the parameters of models, which is why nobody else does: chains through them come last."""
    kind = getattr(getattr(torch, "optim", None), "Optimizer", None)
    return _native.walk_instances(kind) if isinstance(kind, type) else []
