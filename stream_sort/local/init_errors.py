"""Why a function did not start: MiniStack tells its own log alone, AWS the function's."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

ENTRY = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) [A-Z]+ \[\w+\] (.*)")
FAILED = "Warm worker execution error for "
AT_INIT = "Worker init failed: "


def init_errors(lines: Iterable[str], function: str) -> list[tuple[int, str]]:
    """The errors of one function, oldest first, each with its time in milliseconds."""
    found: list[tuple[int, str]] = []
    ours = False
    for line in lines:
        entry = ENTRY.fullmatch(line)
        if entry is None:
            if ours:
                at, text = found[-1]
                found[-1] = (at, f"{text}\n{line}")
            continue
        ours = entry[2].startswith(f"{FAILED}{function}: ")
        if ours:
            at = int(time.mktime(time.strptime(entry[1], "%Y-%m-%d %H:%M:%S")) * 1000)
            cause = entry[2].removeprefix(f"{FAILED}{function}: ").removeprefix(AT_INIT)
            found.append((at, f"ERROR the function did not start: {cause}"))
    return found
