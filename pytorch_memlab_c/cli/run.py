"""`run`: a program under the profiler, with no edit of its source."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from pathlib import Path

from .. import simulate
from ..line_profiler import LineProfiler
from ..line_profiler.records import LineRecords
from .code_tree import Imports
from .endings import at_the_end
from .outputs import checked_paths, of_this_rank, print_text, tell, write_records
from .program import Program, Script, find_program, hide_our_frames
from .targets import Targets
from .usage import UsageError, one_line

_MOST_NAMED = 10


def run(options: argparse.Namespace) -> int:
    """Runs the program; its exceptions, `SystemExit` among them, are passed on. The report is written at the end."""
    paths = of_this_rank(checked_paths(options.output))
    program = find_program(options.program, options.module)
    if options.gpu is not None:
        _simulate(options.gpu)
    try:
        profiler = LineProfiler(device=options.device, columns=options.column or None, saved=options.saved)
    except (ValueError, RuntimeError) as error:
        raise UsageError(one_line(error)) from None
    targets = Targets(profiler, options.function, options.profile)
    _run(program, Session(profiler, targets, paths, options.column or None))
    return 0


def _simulate(gpu: str) -> None:
    try:
        simulate.enable_named(gpu)
    except (ValueError, RuntimeError) as error:
        raise UsageError(f"--gpu {gpu}: {error}") from None


def _run(program: Program, session: Session) -> None:
    program.enter()
    session.start()
    try:
        code = program.load()
        session.targets.add_main(code, Imports(program.source(), program.package), _names_of(program))
        at_the_end(session.finish)
        program.run(code)
    except UsageError:
        session.abandon()
        raise
    except BaseException as error:
        hide_our_frames(error)
        raise


def _names_of(program: Program) -> set[str]:
    """What the program's own module would be called, were it imported."""
    spec = program.main.__spec__
    if isinstance(program, Script):
        return {Path(program.name).stem}
    return {spec.name} if spec is not None else set()


class Session:
    """One profiled run, from its start to its report."""

    def __init__(self, profiler: LineProfiler, targets: Targets, paths: list[str], columns: list[str] | None) -> None:
        self.targets = targets
        self._profiler = profiler
        self._paths = paths
        self._columns = columns
        self._own_sys_path = list(sys.path)
        self._done = False

    def start(self) -> None:
        if any(path.endswith(".csv") for path in self._paths):
            import concurrent.futures.thread  # noqa: F401  pandas needs it, and it cannot be imported at the end
        self.targets.start()
        self._profiler.enable()

    def abandon(self) -> None:
        """The program does not run."""
        self._done = True
        self.targets.stop()
        self._profiler.disable()

    def finish(self) -> None:
        """Write the report, once. What goes wrong here is told, and does not concern the program."""
        if self._done:
            return
        self.abandon()
        try:
            self._write()
        except (Exception, KeyboardInterrupt) as error:
            tell(f"the report could not be written: {str(error) or type(error).__name__}")

    def _write(self) -> None:
        problems = self.targets.problems()
        records = self._records(problems)
        sys.path[:] = self._own_sys_path  # what writes the reports is not to be found in the program's folder
        for path in self._paths:
            self._write_file(records, path)
        if not self._paths and os.environ.get("RANK", "0") == "0":
            print_text(records.to_text(columns=self._columns) + "\n")
        for problem in problems:
            tell(f"error: {problem}")

    def _write_file(self, records: LineRecords, path: str) -> None:
        shown = os.path.relpath(path) if path.startswith(os.getcwd() + os.sep) else path
        try:
            write_records(records, [path], self._columns)
            tell(f"wrote {shown}")
        except Exception as error:  # the other files are still written
            tell(f"{shown} could not be written: {error}")

    def _records(self, problems: list[str]) -> LineRecords:
        records = self._profiler.records()
        shown, others = self.targets.select(records.functions)
        notes = [*records.notes, *problems]
        if others:
            more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
            notes.append(f"not called in this process: {', '.join(others[:_MOST_NAMED])}{more}")
        return dataclasses.replace(records, functions=tuple(shown), notes=tuple(notes))
