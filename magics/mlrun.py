"""The magic `%mlrun`: runs code as if it had been typed, and shows the memory of its lines."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Iterator
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument, kwds, magic_arguments
from IPython.display import display

from pytorch_memlab_c.data.tables import shared_columns
from pytorch_memlab_c.engine.target_device import set_target_gpu
from pytorch_memlab_c.line_profiler import LineProfiler
from pytorch_memlab_c.line_profiler.display import RecordsDisplay
from pytorch_memlab_c.render.files import write_file

from . import names
from .cell import VALUE, Cell, compile_cell
from .options import Options, parse
from .scope import Scope, scope_of, user_frame

_AWAITING = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


@magics_class
class MlrunMagics(Magics):
    """The magics `%mlrun` and `%%mlrun`."""

    @magic_arguments()
    @kwds(usage="%(prog)s [-f func]... [-c column]... [-D] [-g gpu] [-q] [-r] [-T file] statement")
    @argument(
        "-f",
        "--function",
        metavar="func",
        action="append",
        default=[],
        help="""
        A function to profile: f, Net.forward, package.module.f, or one that the code itself defines. Can be given
        several times. Without it: the lines of the code itself, and all functions and methods it defines.""",
    )
    @argument(
        "-c",
        "--column",
        metavar="column",
        action="append",
        default=[],
        help="""
        A column to show beside the default ones: any key of torch.cuda.memory_stats(), or hits, net.last, net.total,
        net.first, net.max, allocated, allocations, tensor_bytes.peak. Can be given several times.""",
    )
    @argument("-D", "--no_default_columns", action="store_true", help="Show only the columns given with -c.")
    @argument(
        "-g",
        "--gpu",
        "--device",
        metavar="gpu",
        help="""
        The device to show, an index, a name (cuda:1, cpu), or all for each device that allocated. The target of
        set_target_gpu is as before afterwards. Without it: that target.""",
    )
    @argument("-q", "--quiet", action="store_true", help="Do not show the table.")
    @argument(
        "-r",
        "--return-profiler",
        action="store_true",
        help="""
        Return the LineProfiler in place of the value of the last expression, which is not shown then.""",
    )
    @argument("-T", "--dump-profile", metavar="file", help="Write the table to this file, as text.")
    @argument(
        "statement",
        nargs="...",
        help="""
        The code to run: the rest of the line. In %%%%mlrun it is the rest of the cell, and the line has options
        only.""",
    )
    @no_var_expand
    @line_cell_magic
    def mlrun(self, line: str, cell: str | None = None) -> Any:
        """Run code and show, for each of its lines, the memory that PyTorch's allocator had in use.

        The code runs as if it had been typed without %mlrun: it sees and sets your variables, may use await and other
        magics, and the value of its last expression is shown and kept in _ (no value if it ends with a semicolon). If
        it fails or is interrupted, the table shows what was measured until then.

        Examples::

            %mlrun y = f(2)
            %mlrun -f Net.forward -c net.first model(x)
            profiler = %mlrun -q -r model(x)

            %%mlrun -f train_step -T lines.txt
            for batch in batches:
                train_step(model, batch)

        Columns: peak is the highest value while the line ran, with all that it called; net/run the bytes allocated at
        its end minus at its start, in its last run; runs how often it ran. The row of the first line (def, or
        %%mlrun) shows the values at entry. Profiling starts and ends with the code; nothing of it is kept.

        To measure functions in all cells that call them, decorate them with @profile, and show what was gathered so far
        with pytorch_memlab_c.print_stats().
        """
        __tracebackhide__ = True
        options = parse(self.mlrun.parser, line, cell)
        frame = user_frame(self.shell)
        scope = scope_of(self.shell, frame)
        try:
            compiled = compile_cell(self.shell, options)
        except SyntaxError as error:  # it is about the cell: where it was found out does not matter
            raise error.with_traceback(None) from None
        profiler = _profiler(options)
        names.add_functions(profiler, options.functions, compiled, scope)
        run = _Run(options, compiled, scope, profiler)
        if not compiled.awaits:
            return run.direct()
        if frame is not None and not frame.f_code.co_flags & _AWAITING:
            raise UsageError("the code awaits, but nothing awaits it here: write %mlrun, with the %, or %%mlrun")
        return run.awaited()


def _profiler(options: Options) -> LineProfiler:
    return LineProfiler(device="all" if options.gpu == "all" else None, columns=options.columns or None)


class _Run:
    """One run of the code under its profiler."""

    def __init__(self, options: Options, cell: Cell, scope: Scope, profiler: LineProfiler) -> None:
        self._options, self._cell, self._scope, self._profiler = options, cell, scope, profiler

    def direct(self) -> Any:
        __tracebackhide__ = True
        try:
            with self._measured():
                self._scope.run(self._cell.code)
        finally:
            value = self._end()
        return value

    async def awaited(self) -> Any:
        __tracebackhide__ = True
        try:
            with self._measured():
                await self._scope.run(self._cell.code)
        finally:
            value = self._end()
        return value

    @contextlib.contextmanager
    def _measured(self) -> Iterator[None]:
        gpu = self._options.gpu
        with contextlib.nullcontext() if gpu in (None, "all") else set_target_gpu(gpu), self._profiler:
            yield

    def _end(self) -> Any:
        """Show what was measured, also after an error, and give what the magic returns."""
        value = self._scope.take(VALUE)
        self._scope.close()
        try:
            self._report()
        except Exception as error:  # the code has run: its results and its own error come first
            print(f"%mlrun: the profile could not be shown or written: {error}", file=sys.stderr)
        if self._options.return_profiler:
            return self._profiler
        return value if self._cell.shows else None

    def _report(self) -> None:
        records, options = self._profiler.records(), self._options
        if options.columns:
            defaults = shared_columns(records) if options.default_columns else ()
            self._profiler.columns = (*defaults, *options.columns)
        if not options.quiet:
            display(RecordsDisplay(records, None, self._profiler.columns))
        if options.path is not None:
            write_file(options.path, records.to_text(columns=self._profiler.columns))
