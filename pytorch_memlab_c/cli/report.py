"""`report`: a report shown again from its JSON."""

from __future__ import annotations

import argparse
import dataclasses

from ..data.selection import select
from .loading import load_records
from .outputs import Printing, checked_paths, tell, write_records
from .usage import UsageError, one_line


def report(options: argparse.Namespace) -> int:
    """Run the command; its exit status is returned."""
    paths = checked_paths(options.output)
    records = load_records(options.file)
    columns = options.column or None
    try:
        if options.function:
            chosen = select(records.functions, options.function)
            records = dataclasses.replace(records, functions=tuple(records.functions[i] for i in chosen))
        if paths:
            write_records(records, paths, columns, options.device)
        else:
            Printing.of(options).print(records, columns, options.device, named=bool(options.function))
    except (ValueError, OSError) as error:
        raise UsageError(one_line(error)) from None
    if paths:
        tell(f"wrote {' and '.join(paths)}")
    return 0
