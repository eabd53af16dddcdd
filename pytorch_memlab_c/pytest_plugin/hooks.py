"""What pytest calls; see the package."""

from __future__ import annotations

import argparse
from collections.abc import Generator
from typing import Any

import pytest

from ..engine import following
from .limits import MARK, limits_of

_PEAKS = pytest.StashKey[list[dict[str, Any]]]()
_KEPT = pytest.StashKey[Any]()
_HIGHEST = 10


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--memlab-report`."""
    parser.getgroup("memlab", "tensor memory").addoption(
        "--memlab-report",
        nargs="?",
        type=_count,
        const=_HIGHEST,
        metavar="N",
        help=f"measure each test's peak of tensor memory and list the N highest (default: {_HIGHEST})",
    )


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of tests from 1 on: write --memlab-report=20, or --memlab-report after the paths"
        )
    return int(text)


def pytest_configure(config: pytest.Config) -> None:
    """Describe the mark, and collect figures if a report was asked for."""
    config.addinivalue_line(
        "markers",
        f"{MARK}(limit, *, device=None, functions=None): fail the test if the peak of tensor memory in its call is "
        'more than limit ("200 MB") above its start; a failure shows the lines at the peak',
    )
    if config.getoption("memlab_report") is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Summary(), "memlab-summary")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A mark that cannot be checked fails the collection of its file or class."""
    report = yield
    wrong: dict[str, list[str]] = {}
    for item in report.result or ():
        if isinstance(item, pytest.Item):
            try:
                limits_of(item)
            except ValueError as error:
                wrong.setdefault(str(error), []).append(item.nodeid)
    if report.passed and wrong:
        report.outcome = "failed"
        report.longrepr = "\n".join(_wrong_mark(tests, reason) for reason, tests in wrong.items())
    return report


def _wrong_mark(tests: list[str], reason: str) -> str:
    others = f" (and {len(tests) - 1} more)" if len(tests) > 1 else ""
    return f"{tests[0]}{others}: @pytest.mark.{MARK}: {reason}"


def pytest_collection_finish(session: pytest.Session) -> None:
    """Follow the allocators from now on, so that all that fixtures make is known when tests free it."""
    whole = session.config.getoption("memlab_report") is not None
    if whole or any(item.get_closest_marker(MARK) for item in session.items):
        following.prepare()


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Innermost around the test's call, so that no other plugin's memory is in its figures."""
    whole = item.config.getoption("memlab_report") is not None
    if not whole and item.get_closest_marker(MARK) is None:
        return (yield)
    measurement = _measurement(item, whole)
    try:
        with measurement:
            result = yield
    finally:
        item.stash[_PEAKS] = measurement.peaks()
    complaint = measurement.complaint()
    if complaint is not None:
        pytest.fail(f"{MARK}: {complaint}", pytrace=False)
    return result


def _measurement(item: pytest.Item, whole: bool) -> Any:
    # Every pytest run loads this plugin; only a run that measures loads these.
    from .functions import Project
    from .measure import Measurement, Profilers, functions_to_show

    try:
        limits = limits_of(item)  # again: marks may be added after the collection
    except ValueError as error:
        pytest.fail(f"@pytest.mark.{MARK}: {error}", pytrace=False)
    roots = item.config.rootpath, item.config.invocation_params.dir
    project, profilers = item.config.stash.setdefault(_KEPT, (Project(*roots), Profilers()))
    functions = functions_to_show(item, limits, project) if limits else []
    return Measurement(limits, functions, profilers, whole)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """The figures travel in the report, also from the workers of pytest-xdist."""
    report = yield
    if call.when == "call" and _PEAKS in item.stash:
        vars(report)["memlab_peaks"] = item.stash[_PEAKS]
        del item.stash[_PEAKS]
    return report


class _Summary:
    """Collects the figures of all tests; registered if the option is given."""

    def __init__(self) -> None:
        self._tests: dict[tuple[str, str], dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for values in getattr(report, "memlab_peaks", ()):
            key = values["device"], report.nodeid
            if key not in self._tests or self._tests[key]["peak"] <= values["peak"]:  # a test may be run again
                self._tests[key] = values

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        from .text import summarize  # as in _measurement

        terminalreporter.section("peaks of tensor memory above the start of each test")
        for line in summarize(self._tests, config.getoption("memlab_report")):
            terminalreporter.line(line)
        if not self._tests:
            terminalreporter.line("no test was measured")
