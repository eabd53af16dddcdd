"""Environment variables that libraries read when they first compile a kernel. Child processes inherit them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ["prepare"]


def prepare(driver_folder: Path) -> None:
    """Makes compilers work with the simulated driver, and keeps what they learn from it out of real devices' caches.

    :param driver_folder: the folder that holds a libcuda.so.1 to link to.
    """
    # PyTorch's kernels compiled at run time are empty here: they must not get into the cache that real devices use.
    os.environ["USE_PYTORCH_KERNEL_CACHE"] = "0"
    # Triton links its launchers to the driver. By soname only, so that they also serve a real one.
    os.environ.setdefault("TRITON_LIBCUDA_PATH", str(driver_folder))
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = _inductor_cache(os.environ.get("TORCHINDUCTOR_CACHE_DIR"))


def _inductor_cache(chosen: str | None) -> str:
    """A cache of its own: inductor keeps there which variant of a kernel was fastest, and here times mean nothing."""
    folder = Path(chosen) if chosen else Path(tempfile.gettempdir()) / f"torchinductor_{os.getuid()}"
    return str(folder if folder.name == "simulated" else folder / "simulated")
