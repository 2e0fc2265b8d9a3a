"""What the demo cost: the requests that the functions count themselves, from their logs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stream_sort.local.stack import LocalStack

METRIC = "StoreRequests"
STEPS = ("enqueue", "process")


def costs_of(stack: LocalStack, messages: int) -> dict[str, str]:
    """Requests to the tables a message, for each function that every message passes."""
    told = {}
    for step in STEPS:
        requests = round(sum(_requests_in(line.text) for line in stack.logs(step)))
        told[step] = f"{requests:,} requests to the tables, {requests / messages:.3f} a message"
    return told


def _requests_in(line: str) -> float:
    """The count in one line, if it is a blob of metrics."""
    if METRIC not in line:
        return 0
    try:
        blob = json.loads(line[line.index("{") :])
    except ValueError:
        return 0
    value = blob.get(METRIC, 0)
    return float(sum(value) if isinstance(value, list) else value)
