"""What the functions of a local stack wrote: asked of its AWS, or read from the file that is kept for when it died."""

from __future__ import annotations

import json
import re
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from stream_sort.local.detached import DetachedMiniStack
from stream_sort.local.log_keeper import PAGE, all_events
from stream_sort.local.readable_logs import LogLine
from stream_sort.local.settlement import STACK

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from stream_sort.local.ministack import MiniStack

ENTRY = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) [A-Z]+ \[\w+\] (.*)")
FAILED = "Warm worker execution error for "
AT_INIT = "Worker init failed: "


def function_logs(aws: MiniStack, step: str, function: str, since: int = 0) -> list[LogLine]:
    """Return what a function wrote, and why it did not start, oldest first; `since` is in milliseconds."""
    if isinstance(aws, DetachedMiniStack) and not aws.is_up:
        lines = [line for line in _kept(aws.functions_log) if line.step == step and line.at >= since]
    else:
        lines = _asked(aws, step, since)
    lines += [LogLine(at, step, text) for at, text in init_errors(aws.log_lines(), function) if at >= since]
    return sorted(lines, key=lambda line: line.at)


def _asked(aws: MiniStack, step: str, since: int) -> list[LogLine]:
    group = f"/stream-sort/{STACK}/{step}"
    with closing(aws.client("logs")) as client:

        def page(start: int) -> list[dict[str, Any]]:
            events: list[dict[str, Any]] = client.filter_log_events(logGroupName=group, startTime=start, limit=PAGE)[
                "events"
            ]
            return events

        events = list(all_events(page, since))
    return [LogLine(event["timestamp"], step, event["message"].rstrip("\n")) for event in events]


def _kept(file: Path) -> list[LogLine]:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError:
        return []
    # The last line may be cut off: whoever wrote it died.
    whole = text[: text.rfind("\n") + 1]
    return [LogLine(**json.loads(line)) for line in whole.splitlines()]


def init_errors(lines: Iterable[str], function: str) -> list[tuple[int, str]]:
    """Return the errors of one function, oldest first, each with its time in milliseconds."""
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
