"""One measured value, with what it covers and how it was obtained."""

from __future__ import annotations

from typing import Literal, TypedDict

MetricStatus = Literal["complete", "partial", "unavailable"]


class MetricResult(TypedDict):
    """One value, ready for JSON. Read `status` before the numbers.

    `value` is there if `status` is "complete"; `known_value` also if it is "partial", as a lower bound; both are None
    if it is "unavailable". `unit` is that of the numbers, `scope` what they cover, `method` how they were obtained.
    """

    status: MetricStatus
    value: int | float | None
    known_value: int | float | None
    unit: str
    scope: str
    method: str


def complete(value: int | float, *, unit: str, scope: str, method: str) -> MetricResult:
    """A value that covers all of its scope."""
    return _result("complete", value, value, unit, scope, method)


def unavailable(*, unit: str, scope: str, method: str) -> MetricResult:
    """No value: never shown as 0."""
    return _result("unavailable", None, None, unit, scope, method)


def _result(
    status: MetricStatus, value: int | float | None, known: int | float | None, unit: str, scope: str, method: str
) -> MetricResult:
    return {"status": status, "value": value, "known_value": known, "unit": unit, "scope": scope, "method": method}
