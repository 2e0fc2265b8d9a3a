"""How far a job is, told while it runs: rows, rows a second, parts. Knows no job."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

# A terminal's line is written over; a log keeps every one.
TERMINAL_PAUSE = 1.0
LOG_PAUSE = 10.0


class JobProgress:
    """Use it around a job, and `add` what is done. Writes to stderr, where results never go.

    `rows` and `parts` are what there is to do, without what an earlier run has done; None where it is not known.
    """

    def __init__(  # noqa: PLR0913  # most have their defaults
        self,
        rows: int | None,
        parts: int | None,
        *,
        what: str = "rows",
        quiet: bool = False,
        stream: TextIO | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._all = (rows, parts)
        self._what = what
        self._done = [0, 0]
        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._under_way: Callable[[], int] | None = None
        self._monotonic = monotonic
        self._began = monotonic()
        self._over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="progress", daemon=True)

    def __enter__(self) -> Self:
        self._began = self._monotonic()
        if not self._quiet:
            self._ticker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._under_way = None
        if not self._quiet:
            self._ticker.join()
            self._show(end="\n")

    @property
    def seconds(self) -> float:
        """How long it has been going on."""
        return self._monotonic() - self._began

    def add(self, rows: int, parts: int = 1) -> None:
        """Count what more is done; to be called by one thread."""
        self._done[0] += rows
        self._done[1] += parts

    def watch(self, under_way: Callable[[], int]) -> None:
        """Count also what `under_way` says is done of parts that are not."""
        self._under_way = under_way

    def line(self) -> str:
        """Return how far it is, in one line."""
        rows, parts = self._done
        rows += self._under_way() if self._under_way is not None else 0
        rate = rows / max(self.seconds, 0.001)
        return (
            f"{rows:,}{_of(self._all[0])} {self._what}, {rate:,.0f}/s, "
            f"{parts:,}{_of(self._all[1])} parts, {self.seconds:.0f} s"
        )

    def _tick(self) -> None:
        pause = TERMINAL_PAUSE if self._stream.isatty() else LOG_PAUSE
        while not self._over.wait(pause):
            self._show(end="" if self._stream.isatty() else "\n")

    def _show(self, end: str) -> None:
        # Back to the first column, and clear what a longer line left behind.
        start = "\r\x1b[K" if self._stream.isatty() else ""
        self._stream.write(f"{start}{self.line()}{end}")
        self._stream.flush()


def _of(count: int | None) -> str:
    return "" if count is None else f" of {count:,}"
