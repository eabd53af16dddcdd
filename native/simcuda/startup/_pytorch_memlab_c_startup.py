"""Start-up of PYTORCH_MEMLAB_SIMULATE; imported by pytorch_memlab_c_simulate.pth where that variable is set.

It must be cheap and must not fail: every Python process of the environment runs it. So it only waits for
`import torch`; pytorch_memlab_c itself is not imported before that.

PYTEST_DONT_REWRITE: it is imported before pytest could rewrite it, and pytest would warn of that.
"""

import os
import sys

VARIABLE = "PYTORCH_MEMLAB_SIMULATE"


class _TorchFinder:
    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        _enable()
        # enable() may have put a finder of its own in front: ask from the beginning.
        import importlib.util

        return importlib.util.find_spec(name)


def _enable():
    text = os.environ.get(VARIABLE)
    if not text:
        return
    try:
        from pytorch_memlab_c import simulate
    except ImportError as error:
        # Not an ImportError: `try: import torch` must not take this for a missing PyTorch and run without it.
        raise RuntimeError(f"{VARIABLE} is set, but pytorch_memlab_c cannot be imported: {error}") from error
    simulate.enable_from_environment(text)


def install():
    """Has the simulated GPU enabled when torch is imported."""
    if "torch" in sys.modules:
        _enable()
    elif not any(isinstance(finder, _TorchFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _TorchFinder())
