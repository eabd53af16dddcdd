"""What `-f` and `-p` name: found in modules as the program imports them, and given to the profiler."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import CodeType, ModuleType

from ..data.record_types import FunctionRecord
from ..engine.module_watch import ModuleWatch
from ..line_profiler import LineProfiler
from ..line_profiler.callables import COMPILED
from .code_tree import Imports, functions_in, names_in
from .library_models import is_step_part, may_define_models
from .members import functions_of_module, is_compiled, look_up
from .names import can_be_imported, checked_name, did_you_mean, is_in, similar_modules
from .own_code import OwnCode
from .usage import UsageError

MAIN = "__main__"
Tree = list[tuple[str, CodeType]]
#: Functions that a report has where none ran.
_MOST_SILENT = 10


class Function:
    """One `-f`: the full names it may refer to, and the code that was found under them, by id."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.names = [text]
        self.codes: dict[int, CodeType] = {}
        self.problem = ""

    def qualnames_in(self, module: str) -> list[str]:
        """What it would be called in that module."""
        own = [self.text] if module == MAIN else []
        return own + [name[len(module) + 1 :] for name in self.names if name.startswith(module + ".")]

    def take(self, codes: Sequence[CodeType]) -> None:
        """Add code objects that the name refers to."""
        self.codes.update({id(code): code for code in codes})


class Targets:
    """The functions to profile. Names that are never found are reported at the end (`problems`)."""

    def __init__(self, profiler: LineProfiler, functions: list[str], packages: list[str]) -> None:
        self._profiler = profiler
        self._functions = [Function(checked_name(text, "-f")) for text in dict.fromkeys(functions)]
        named = packages or ([] if functions else [MAIN])
        self._nothing_named = not packages and not functions
        self._own: OwnCode | None = None
        self._of_libraries: set[int] = set()
        self._modules_found = {checked_name(text, "-p"): 0 for text in named}
        self._with_functions: set[str] = set()
        self._main_names = {MAIN}
        self._known: dict[str, set[str]] = {}
        self._watch = ModuleWatch(self._is_wanted, self._module_executed, self._code_seen)
        self._failure: Exception | None = None

    @property
    def named(self) -> bool:
        """Whether functions were named one by one, and nothing else."""
        return bool(self._functions) and not self._modules_found

    # ---- before the program runs ----

    def take_own_code(self, own: OwnCode | None) -> None:
        """Where nothing was named, all of the program's own code is meant."""
        self._own = own if self._nothing_named else None

    def start(self) -> None:
        """From now on, modules are looked at as they are imported; those that are there already at once."""
        self._watch.start()
        for name, module in list(sys.modules.items()):
            if name != MAIN and isinstance(module, ModuleType) and self._is_wanted(name):
                self._add_members(module)
        self._look_up_pending()

    def add_main(self, code: CodeType, imports: Imports, names: set[str]) -> None:
        """The program's own code; `names`: what it is called besides `__main__`.

        Raises `UsageError` for a name that nothing in the program could match.
        """
        self._main_names |= names
        tree = list(functions_in(code))
        self._known[MAIN] = {qualname for qualname, _ in tree}
        if self._main_names & self._modules_found.keys():
            self._profiler.add_code(code, "<module>", MAIN)
        for name in self._main_names:
            self._add_from_tree(name, tree, MAIN)
        mentioned = names_in(code)
        for function in (f for f in self._functions if not f.codes):
            function.names.append(imports.full_name(function.text))
            self._check_function(function, None if imports.has_star else mentioned)
        for package in self._modules_found.keys() - self._main_names:
            if not can_be_imported(package.partition(".")[0]):
                raise UsageError(
                    f"-p {package}: there is no such module{did_you_mean(similar_modules(package, list(sys.modules)))}"
                )
        self._look_up_pending()

    def _check_function(self, function: Function, mentioned: set[str] | None) -> None:
        methods = [name for name in self._known[MAIN] if name.startswith(function.text + ".")]
        if methods:
            raise UsageError(f"-f {function.text}: this is a class; name its methods: {', '.join(sorted(methods))}")
        first = function.text.partition(".")[0]
        if mentioned is not None and first not in mentioned and not can_be_imported(first):
            raise UsageError(f"-f {function.text}: the program has no such function{self._hint(function)}")

    # ---- while it runs: nothing here may disturb it ----

    def _is_wanted(self, module: str) -> bool:
        root = module.partition(".")[0]
        in_package = any(is_in(module, package) for package in self._modules_found)
        own = self._own is not None and self._own.may_have(module)
        of_library = self._nothing_named and may_define_models(module)
        named = any(name.partition(".")[0] == root for f in self._functions for name in f.names)
        return own or of_library or in_package or named

    def _code_seen(self, module: str, code: CodeType) -> None:
        try:
            tree = list(functions_in(code))
            self._known[module] = {qualname for qualname, _ in tree}
            self._add_from_tree(module, tree, module)
        except Exception as error:
            self._failure = error

    def _module_executed(self, module: ModuleType) -> None:
        try:
            if module.__name__ not in self._known:  # its loader had no code to show
                self._add_members(module)
            self._look_up_pending()
        except Exception as error:
            self._failure = error

    # ---- finding ----

    def _add_from_tree(self, module: str, tree: Tree, shown_module: str) -> None:
        for function in self._functions:
            wanted = function.qualnames_in(module)
            function.take([code for qualname, code in tree if qualname in wanted])
        named = {code for function in self._functions for code in function.codes}
        all_of_it = self._count_module(module, len(tree))
        for qualname, code in tree:
            if all_of_it or id(code) in named or self._is_meant(module, qualname, code):
                self._profiler.add_code(code, qualname, shown_module)

    def _add_members(self, module: ModuleType) -> None:
        functions = list(functions_of_module(module))
        all_of_it = self._count_module(module.__name__, len(functions))
        for function in functions:
            if all_of_it or self._is_meant(module.__name__, function.__qualname__, function.__code__):
                self._profiler.add_function(function)

    def _is_meant(self, module: str, qualname: str, code: CodeType) -> bool:
        """Where nothing was named: whether it is the program's own, or a part of a step in a library."""
        if self._own is not None and self._own.has(code.co_filename):
            return True
        found = self._nothing_named and may_define_models(module) and is_step_part(qualname, code)
        if found:
            self._of_libraries.add(id(code))
        return found

    def _count_module(self, module: str, functions: int) -> bool:
        found = [package for package in self._modules_found if is_in(module, package)]
        for package in found:
            self._modules_found[package] += 1
        self._with_functions.update(found if functions else ())
        return bool(found)

    def _look_up_pending(self) -> None:
        for function in self._functions:
            for name in function.names:
                if not function.codes:
                    self._look_up(function, name)

    def _look_up(self, function: Function, name: str) -> None:
        try:
            found = look_up(name)
        except LookupError:
            return
        except TypeError as error:
            function.problem = str(error)
            return
        function.take([plain.__code__ for plain in found])
        for plain in found:
            self._profiler.add_function(plain)

    # ---- when it has ended ----

    def stop(self) -> None:
        """Stop watching imports."""
        self._watch.stop()

    def select(self, records: Sequence[FunctionRecord]) -> tuple[list[FunctionRecord], list[str]]:
        """What a report is to have: functions that ran, and those named by `-f` that did not, unless a namesake did.

        And the qualnames of the others.
        """
        ran = {id(record.code) for record in records if record.ran}
        silent = [f for f in self._functions if not ran & f.codes.keys()]
        wanted = ran.union(*(f.codes for f in silent))
        unasked = wanted | self._of_libraries
        others = dict.fromkeys(record.qualname for record in records if id(record.code) not in unasked)
        shown = [record for record in records if id(record.code) in wanted]
        return shown or list(records[:_MOST_SILENT]), list(others)

    def problems(self) -> list[str]:
        """A line for each name that was not found."""
        lines = [f"-f {f.text}: {f.problem or self._why_missing(f)}" for f in self._functions if not f.codes]
        for package in (package for package, count in self._modules_found.items() if not count):
            hint = did_you_mean(similar_modules(package, list(sys.modules)))
            lines.append(f"-p {package}: the program imported no such module{hint}")
        lines += [f"-p {package}: {COMPILED}" for package in self._modules_found if self._is_compiled(package)]
        if self._failure is not None:
            lines.append(f"not all functions could be looked for: {self._failure!r}")
        return lines

    def _is_compiled(self, package: str) -> bool:
        module = sys.modules.get(package)
        return package not in self._with_functions and isinstance(module, ModuleType) and is_compiled(module)

    def _why_missing(self, function: Function) -> str:
        try:
            made = look_up(f"{MAIN}.{function.text}")[0]
            return f"it came to be while the program ran{did_you_mean([f'{made.__module__}.{made.__qualname__}'])}"
        except (LookupError, TypeError):
            return f"the program has imported no such function{self._hint(function)}"

    def _hint(self, function: Function) -> str:
        names = [n if m == MAIN else f"{m}.{n}" for m, known in self._known.items() for n in known]
        same_end = [name for name in names if name.endswith("." + function.text)]
        return did_you_mean(
            same_end or similar_modules(function.names[-1], names) or similar_modules(function.text, names)
        )
