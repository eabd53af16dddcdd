"""A progress bar for long copies: tqdm's, where it is installed, and only when more than a second is expected."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

_WORTH_A_BAR = 1.0  # seconds
_ENOUGH_TO_JUDGE = 0.05


class CopyProgress:
    """Counts copied bytes. The bar opens once the speed so far makes the whole take more than a second."""

    def __init__(
        self, total: int, title: str, wanted: bool = True, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._total, self._title, self._wanted, self._clock = total, title, wanted, clock
        self._start, self._done = clock(), 0
        self._bar: Any = None

    def advance(self, nbytes: int) -> None:
        """Count bytes that were copied."""
        self._done += nbytes
        try:
            if self._bar is not None:
                self._bar.update(nbytes)
            elif self._wanted and self._is_long():
                self._open()
        except Exception:  # a bar that cannot be drawn (standard error closed, say) stops no copy
            self._wanted, self._bar = False, None

    def close(self) -> None:
        """Remove the bar."""
        bar, self._bar, self._wanted = self._bar, None, False
        if bar is not None:
            try:
                bar.close()
            except Exception:
                return

    def _is_long(self) -> bool:
        elapsed = self._clock() - self._start
        return elapsed > _ENOUGH_TO_JUDGE and elapsed * self._total > _WORTH_A_BAR * self._done

    def _open(self) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            self._wanted = False
            return
        self._bar = tqdm(
            total=self._total,
            initial=self._done,
            desc=self._title,
            unit="B",
            unit_scale=True,
            unit_divisor=1024,
            leave=False,
        )
