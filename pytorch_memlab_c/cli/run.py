"""`run`: a program under the profiler, with no edit of its source."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from pathlib import Path
from typing import NamedTuple

from .. import simulate
from ..data import advice
from ..data.keeper_types import KeeperRecords
from ..line_profiler import LineProfiler
from ..line_profiler.records import LineRecords
from ..render.text import first_few
from .code_tree import Imports
from .devices import check_device
from .endings import Outcome, at_the_end, end_process, outcome_of
from .facts import Run
from .keeping import of_growing_lines, when_memory_ran_out
from .outputs import Printing, checked_paths, misplaced_output, of_this_rank, tell, write_records
from .own_code import own_code
from .program import Program, Script, find_program, hide_our_frames
from .recording import Recording
from .targets import Targets
from .usage import UsageError, one_line

_MOST_NAMED = 10


def run(options: argparse.Namespace) -> int:
    """Runs the program; its exceptions, `SystemExit` among them, are passed on. The report is written at the end."""
    facts = Run(options.words)
    paths = of_this_rank(checked_paths(options.output))
    recording = Recording(options.snapshot, options.snapshot_entries) if options.snapshot else None
    program = find_program(options.program, options.module)
    misplaced = None if paths else misplaced_output(program.arguments)
    if misplaced:
        tell(f"{misplaced} goes to the program, as it follows its name; put it before to write this report there")
    if options.gpu is not None:
        _simulate(options.gpu)
    profiler = _profiler(options)
    targets = Targets(profiler, options.function, options.profile)
    output = Output(paths, options.column or None, Printing.of(options))
    _run(program, Session(profiler, targets, output, facts, recording))
    return 0


def _profiler(options: argparse.Namespace) -> LineProfiler:
    try:
        with advice.for_command_line():
            check_device(options.device)
            return LineProfiler(device=options.device, columns=options.column or None, saved=options.saved)
    except (ValueError, RuntimeError) as error:
        raise UsageError(one_line(error)) from None


def _simulate(gpu: str) -> None:
    try:
        simulate.enable_named(gpu)
    except (ValueError, RuntimeError) as error:
        raise UsageError(f"--gpu {gpu}: {error}") from None


def _run(program: Program, session: Session) -> None:
    program.enter()
    session.targets.take_own_code(own_code(program))
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
        session.outcome = outcome_of(error)
        session.keepers = when_memory_ran_out(error)
        hide_our_frames(error)
        raise


def _names_of(program: Program) -> set[str]:
    """What the program's own module would be called, were it imported."""
    spec = program.main.__spec__
    if isinstance(program, Script):
        return {Path(program.name).stem}
    return {spec.name} if spec is not None else set()


class Output(NamedTuple):
    """Where the report goes, with which columns, and how it is printed if it goes to no file."""

    paths: list[str]
    columns: list[str] | None
    printing: Printing


class Session:
    """One profiled run, from its start to its report."""

    outcome: Outcome = "success"
    keepers = KeeperRecords()

    def __init__(
        self,
        profiler: LineProfiler,
        targets: Targets,
        output: Output,
        facts: Run,
        recording: Recording | None = None,
    ) -> None:
        self.targets = targets
        self._recording = recording
        self._profiler = profiler
        self._paths, self._columns, self._printing = output
        self._facts = facts
        self._own_sys_path = list(sys.path)
        self._done = False

    def start(self) -> None:
        """Begin to measure."""
        if any(path.endswith(".csv") for path in self._paths):
            import concurrent.futures.thread  # noqa: F401  pandas needs it, and it cannot be imported at the end
        self.targets.start()
        if self._recording is not None:
            self._recording.start()
        self._profiler.enable()

    def abandon(self) -> None:
        """The program does not run."""
        self._done = True
        self.targets.stop()
        self._profiler.disable()

    def finish(self) -> None:
        """Write the report, once. A failure here is reported, and changes nothing but an exit code of 0."""
        if self._done:
            return
        self.abandon()
        if self._recording is not None:
            self._recording.finish()
        try:
            with advice.for_command_line():
                written = self._write()
        except (Exception, KeyboardInterrupt) as error:
            tell(f"the report could not be written: {str(error) or type(error).__name__}")
            written = False
        end_process(self.outcome, failed=not written)

    def _write(self) -> bool:
        """Whether all files could be written."""
        problems = self.targets.problems()
        records = self._records(problems)
        sys.path[:] = self._own_sys_path  # what writes the reports is not to be found in the program's folder
        written = [self._write_file(records, path) for path in self._paths]
        if not self._paths and os.environ.get("RANK", "0") == "0":
            self._printing.print(records, self._columns, named=self.targets.named)
        for problem in problems:
            tell(f"error: {problem}")
        return all(written)

    def _write_file(self, records: LineRecords, path: str) -> bool:
        shown = _as_typed(path)
        try:
            write_records(records, [path], self._columns)
        except Exception as error:  # the other files are still written
            tell(f"{shown} could not be written: {error}")
            return False
        tell(f"wrote {shown}")
        return True

    def _records(self, problems: list[str]) -> LineRecords:
        records = self._profiler.records()
        shown, others = self.targets.select(records.functions)
        notes = [*records.notes, *problems]
        if others:
            notes.append(f"not called in this process: {first_few(others, _MOST_NAMED)}")
        records = dataclasses.replace(records, functions=tuple(shown), notes=tuple(notes), run=self._facts.info())
        return dataclasses.replace(records, keepers=self.keepers if self.keepers.when else of_growing_lines(records))


def _as_typed(path: str) -> str:
    """Relative to the working directory where it is in there; that directory may no longer exist."""
    try:
        return os.path.relpath(path) if path.startswith(os.getcwd() + os.sep) else path
    except OSError:
        return path
