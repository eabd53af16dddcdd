"""Where trace events come from in this process: some tests are of the trace function alone."""

from __future__ import annotations

import pytest

from pytorch_memlab_c import _native

settrace_only = pytest.mark.skipif(_native.engine() == "monitoring", reason="events come from sys.monitoring here")
