"""What the functions of a local stack wrote: asked of its AWS, or read from the file that is kept for when it died."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

from stream_sort.local.detached import DetachedMiniStack
from stream_sort.local.init_errors import init_errors
from stream_sort.local.log_keeper import PAGE, all_events
from stream_sort.local.readable_logs import LogLine
from stream_sort.local.settlement import STACK

if TYPE_CHECKING:
    from pathlib import Path

    from stream_sort.local.ministack import MiniStack


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
