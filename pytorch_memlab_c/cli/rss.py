"""`rss`: the highest resident memory of a command."""

from __future__ import annotations

import argparse
import json
import subprocess

from ..process import measure_peak_rss
from ..render.files import write_file
from ..render.text import readable_size
from .outputs import checked_paths, tell
from .usage import UsageError


def rss(options: argparse.Namespace) -> int:
    """The exit code is the command's; as in a shell 128 and the signal's number where a signal ended it."""
    paths = checked_paths(options.output, (".json",))
    command = options.run[1:] if options.run[:1] == ["--"] else options.run
    if not command:
        raise UsageError("nothing to run: give a command, after --")
    try:
        result = measure_peak_rss(command)
    except subprocess.CalledProcessError as error:
        tell(f"peak RSS not measured: {error}")
        return error.returncode if error.returncode > 0 else 128 - error.returncode
    except (OSError, NotImplementedError) as error:
        raise UsageError(f"{command[0]}: {getattr(error, 'strerror', None) or error}") from None
    value = result["value"]
    figure = "unavailable" if value is None else f"{readable_size(int(value))} ({int(value)} bytes)"
    tell(f"peak RSS {figure}: {result['scope']}")
    for path in paths:
        write_file(path, json.dumps(result, indent=2) + "\n")
    return 0
