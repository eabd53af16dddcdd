"""The subcommands and their options."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ..data import advice
from ..data.version import __version__
from ..render.terminal import COLORS
from ..render.text import clean, write_text
from .usage import Parser, UsageError

_RUN_EXAMPLES = """\
examples:
  {prog} train.py --epochs 1              the script, and the modules of its package or folder
  {prog} -o report.html -o report.json train.py
  {prog} -f Net.forward -f package.data.collate train.py
  {prog} -p package.models -m package.train --epochs 1
  {prog} -c active_bytes.all.peak -c net.max train.py
  torchrun --nproc-per-node 2 -m pytorch_memlab_c run -o report.json train.py

The program runs as it does without the profiler: its arguments, exit code, exceptions, signals and standard input are
its own. The report is written when it ends, also by an exception, Ctrl-C or SIGTERM: with -o to files, otherwise as
text to standard output. Processes that it starts, such as workers of a DataLoader, are not profiled.
"""
_SIMULATE_EXAMPLES = """\
examples:
  {prog} --gpu h100-80gb train.py
  {prog} --gpu h100-80gb:2 -o report.html -m package.train
  {prog} --gpu 24GB@8.9 train.py          any amount of memory, and a compute capability

As `run`, on simulated GPUs: PyTorch's own caching allocator runs, kernels do not. Needs the CUDA build of PyTorch on
Linux, and no GPU. PYTORCH_MEMLAB_SIMULATE=h100-80gb does the same for any command.
"""
_REPORT_EXAMPLES = """\
examples:
  {prog} report.json
  {prog} report.json -o report.html -o report.csv
  {prog} report.json -f Net.forward -c active_bytes.all.peak -c net.max
  {prog} report.json --device cuda:1
"""
_DIFF_EXAMPLES = """\
examples:
  {prog} before.json after.json
  {prog} before.json after.json -f Net.forward -c reserved_bytes.all.peak

Lines are matched by their text, so that lines put in between do not move the others. First come lines whose source
differs, then those whose peak differs, the largest difference first.
"""
_MERGE_EXAMPLES = """\
examples:
  torchrun --nproc-per-node 2 -m pytorch_memlab_c run -o report.json train.py
  {prog} report.rank*.json
  {prog} report.rank*.json -f train -c reserved_bytes.all.peak -o ranks.csv
"""
_RSS_EXAMPLES = """\
examples:
  {prog} -- python train.py --epochs 1
  {prog} -o rss.json -- make data

The highest resident memory (RSS) of the command over its whole life, as the operating system counts it: of the command
and of each process that it waited for, the highest one. The figure is printed on standard error.
"""
_GPUS_EXAMPLES = """\
examples:
  {prog}
  pytorch-memlab simulate --gpu rtx4090 train.py
"""
_COLUMNS_EXAMPLES = """\
examples:
  {prog}
  pytorch-memlab run -c allocation.all.allocated train.py
"""
_SNAPSHOT_EXAMPLES = """\
examples:
  {prog} oom.pickle                        who held the memory: at the peak, when it ran out, at the end
  {prog} oom.pickle -o page.html           with a timeline; also .json, .csv (a row a line), .txt
  {prog} oom.pickle --at 12.5s --at "#1200" --at 50%%
  {prog} oom.pickle --frames torch         name PyTorch's own lines, too
  {prog} oom.pickle --skip megatron        pass over a package of yours
  zcat oom.pickle.gz | {prog} -            .gz and .zst files are read as they are, too

Reads what torch.cuda.memory._dump_snapshot() wrote, with no PyTorch and without running anything that is in the file.
`diff a.pickle b.pickle` compares two, `merge folder/` shows those of several ranks side by side.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command of the command line; returns its exit code. A profiled program's exceptions are passed on."""
    parser = _parser(_command_name())
    options = parser.parse_args(arguments)
    options.words = [*parser.prog.split(), *(sys.argv[1:] if arguments is None else arguments)]
    if "action" not in options:
        parser.error("nothing to do: give a command, " + ", ".join(_COMMANDS))
    try:
        with contextlib.nullcontext() if options.command in _PROGRAM_COMMANDS else advice.for_command_line():
            code: int = options.action(options)
        return code
    except UsageError as error:
        write_text(sys.stderr, f"{parser.prog} {options.command}: error: {clean(str(error))}\n")
        return 2
    except KeyboardInterrupt:
        if options.command in _PROGRAM_COMMANDS:  # the program's own
            raise
        return 128 + signal.SIGINT


def _command_name() -> str:
    name = os.path.basename(sys.argv[0])
    return "python -m pytorch_memlab_c" if name == "__main__.py" else name or "pytorch-memlab"


def _parser(prog: str) -> Parser:
    parser = Parser(
        prog=prog,
        description="Which line of a PyTorch program takes the memory.",
        epilog=f"`{prog} run --help` and the like show the options of a command, with examples.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"pytorch_memlab_c {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="command", dest="command", parser_class=Parser)
    for name, (help_text, examples, add_options) in _COMMANDS.items():
        command = commands.add_parser(
            name,
            help=help_text,
            description=help_text[0].upper() + help_text[1:] + ".",
            epilog=examples.format(prog=f"{prog} {name}"),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        add_options(command)
    return parser


def _append(parser: Parser, *names: str, metavar: str, help: str) -> None:
    parser.add_argument(*names, action="append", default=[], metavar=metavar, help=help)


def _add_run(parser: Parser) -> None:
    parser.set_defaults(gpu=None)
    _add_program(parser)


def _add_simulate(parser: Parser) -> None:
    gpu_help = "the GPU to simulate (see `gpus`), and how many"
    parser.add_argument("--gpu", required=True, metavar="NAME[:COUNT]", help=gpu_help)
    _add_program(parser)


def _add_program(parser: Parser) -> None:
    function_help = "profile this function: Net.forward of the script, or package.module.Net.forward"
    _append(parser, "-f", "--function", metavar="QUALNAME", help=function_help)
    module_help = "profile all functions of this module, or of this package and its modules; __main__: the script"
    _append(parser, "-p", "--profile", metavar="MODULE", help=module_help)
    output_help = "write the report here: .html, .json, .csv or .txt"
    _append(parser, "-o", "--output", metavar="FILE", help=output_help)
    column_help = "show this column, a key of torch.cuda.memory_stats() or one of the profiler's own"
    _append(parser, "-c", "--column", metavar="COLUMN", help=column_help)
    parser.add_argument("--device", help="the device to show: cpu, cuda:1, all (default: the GPU if there is one)")
    snapshot = "record PyTorch's memory history and write it here (.pickle), and as FILE.oom when memory runs out"
    parser.add_argument("--snapshot", metavar="FILE", help=snapshot)
    entries = "events that a snapshot keeps of each device, the last ones (default: %(default)s; about 1 KB each)"
    parser.add_argument("--snapshot-entries", type=int, default=1_000_000, metavar="N", help=entries)
    parser.add_argument("--saved", action="store_true", help="count what autograd keeps for backward, too")
    _add_printing(parser)
    module = "run a module, as python -m does; all that follows is the module's"
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help=module)
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="script.py ...", help="script and its arguments")
    parser.set_defaults(action=_lazy("run", "run"))


def _add_printing(parser: Parser) -> None:
    verbose = "print all functions and all of their lines, not the highest peaks alone"
    parser.add_argument("-v", "--verbose", action="store_true", help=verbose)
    parser.add_argument("--stderr", action="store_true", help="print the report on standard error")
    color = "when the printed report has colours (default: in a terminal, unless NO_COLOR is set or TERM is dumb)"
    parser.add_argument("--color", choices=COLORS, default="auto", help=color)


def _add_report(parser: Parser) -> None:
    parser.add_argument("file", help="a report that was written as .json")
    _append(parser, "-o", "--output", metavar="FILE", help="write it here instead of to standard output")
    _add_selection(parser)
    _add_printing(parser)
    parser.add_argument("--device", help="the device to show: cpu, cuda:1, all, target")
    parser.set_defaults(action=_lazy("report", "report"))


def _add_diff(parser: Parser) -> None:
    parser.add_argument("before", help="a report that was written as .json, or a memory snapshot")
    parser.add_argument("after", help="another one, of the changed program")
    _add_selection(parser)
    parser.set_defaults(action=_lazy("diff", "diff"))


def _add_merge(parser: Parser) -> None:
    parser.add_argument(
        "files",
        nargs="+",
        metavar="file",
        help="reports that were written as .json, or snapshots, one a rank; or a folder",
    )
    _append(parser, "-o", "--output", metavar="FILE", help="write the table here: .csv or .txt")
    _add_selection(parser)
    parser.set_defaults(action=_lazy("merge", "merge"))


def _add_rss(parser: Parser) -> None:
    _append(parser, "-o", "--output", metavar="FILE", help="write the figure here, as .json")
    parser.add_argument("run", nargs=argparse.REMAINDER, metavar="-- command ...", help="the command and its arguments")
    parser.set_defaults(action=_lazy("rss", "rss"))


def _add_snapshot(parser: Parser) -> None:
    parser.add_argument("files", nargs="+", metavar="file", help="a memory snapshot; -: standard input")
    _append(parser, "-o", "--output", metavar="FILE", help="write the report here: .html, .json, .csv or .txt")
    _append(
        parser, "--at", metavar="MOMENT", help="peak, oom, end (all three by default), 12.5s, #1200 (an event), 50%%"
    )
    parser.add_argument("--device", help="the device to show: cuda:0, host (default: all)")
    frames = "name a stack by its innermost line of the user's, of Python (torch), or at all"
    parser.add_argument("--frames", choices=("user", "torch", "all"), default="user", help=frames)
    _append(parser, "--skip", metavar="PACKAGE", help="pass over the lines of this package")
    parser.set_defaults(action=_lazy("snapshot", "snapshot"))


def _add_gpus(parser: Parser) -> None:
    parser.set_defaults(action=_lazy("listings", "gpus"))


def _add_columns(parser: Parser) -> None:
    parser.set_defaults(action=_lazy("listings", "columns"))


def _add_selection(parser: Parser) -> None:
    _append(parser, "-c", "--column", metavar="COLUMN", help="show this column")
    _append(parser, "-f", "--function", metavar="QUALNAME", help="show this function")


def _lazy(module: str, function: str) -> Callable[[argparse.Namespace], int]:
    """What a command needs is imported when it is given."""

    def action(options: argparse.Namespace) -> int:
        from importlib import import_module

        code: int = getattr(import_module(f".{module}", __package__), function)(options)
        return code

    return action


_PROGRAM_COMMANDS = ("run", "simulate")
_COMMANDS: dict[str, tuple[str, str, Callable[[Any], None]]] = {
    "run": ("run a program under the profiler, with no edit of its source", _RUN_EXAMPLES, _add_run),
    "simulate": ("run a program under the profiler on a simulated GPU", _SIMULATE_EXAMPLES, _add_simulate),
    "report": ("show a report again: other functions, columns or formats", _REPORT_EXAMPLES, _add_report),
    "diff": ("show which lines of a changed program take more or less", _DIFF_EXAMPLES, _add_diff),
    "merge": ("show the reports of several ranks side by side", _MERGE_EXAMPLES, _add_merge),
    "snapshot": ("show a memory snapshot of PyTorch by line", _SNAPSHOT_EXAMPLES, _add_snapshot),
    "gpus": ("list the GPUs that can be simulated", _GPUS_EXAMPLES, _add_gpus),
    "columns": ("list the columns that reports can show", _COLUMNS_EXAMPLES, _add_columns),
    "rss": ("measure the highest resident memory of any command", _RSS_EXAMPLES, _add_rss),
}
