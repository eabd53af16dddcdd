"""The two sources of trace events, sys.monitoring and the trace function, give the same tables."""

from __future__ import annotations

import sys

import pytest
from run_program import SETTRACE, SUPPORT, run_program

pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is of Python 3.12")
PROGRAMS = SUPPORT / "engine_programs.py"


def outcomes(tmp_path, first, env):
    command = ["program.py", str(first), str(first + 125)]
    return run_program(PROGRAMS.read_text(), tmp_path, command=command, env=env, timeout=300).values["outcomes"]


@pytest.mark.parametrize("first", range(0, 1000, 125))
def test_random_programs(tmp_path, first):
    monitoring, settrace = (
        outcomes(tmp_path, first, env) for env in ({"PYTORCH_MEMLAB_ENGINE": "monitoring"}, SETTRACE)
    )
    assert len(monitoring) == 125 and len({outcome["source"] for outcome in monitoring.values()}) == 125
    for seed, outcome in monitoring.items():
        assert outcome == settrace[seed], f"seed {seed}\n{outcome['source']}"
    hits = [
        line[0] for outcome in monitoring.values() for _, lines in outcome["tables"].values() for line in lines.values()
    ]
    assert sum(hits) > 10_000
