"""Where trace events come from in this process: some tests are of the trace function alone."""

from __future__ import annotations

import pytest

from pytorch_memlab_c import _native

#: What a table says of a function that did not run under `LineProfiler`: sys.monitoring sees all threads.
NOT_RUN = "never called" if _native.engine() == "monitoring" else "no call was seen"

settrace_only = pytest.mark.skipif(_native.engine() == "monitoring", reason="events come from sys.monitoring here")
