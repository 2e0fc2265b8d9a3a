"""`stream-sort` as a process of its own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MAIN = "from stream_sort.cli.app import main; main()"
KEEP = "import pathlib; from stream_sort.local import builds; builds.KEPT = pathlib.Path({kept!r}); "


def command(*words: str, builds: Path | None = None) -> list[str]:
    """The command line; it finds no build from before if it is told to keep its own in an empty folder."""
    return [sys.executable, "-c", (KEEP.format(kept=str(builds)) if builds else "") + MAIN, *words]
