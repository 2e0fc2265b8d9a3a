"""Run a local AWS and keep what its functions log in a file, which outlives it. A script of its own: stdlib only.

    python log_keeper.py PORT FILE COMMAND...

A line of FILE is JSON: `at` in milliseconds, `step`, `text`. What is logged in the last moment before the AWS dies may
be missing. Ends as the command does, with its exit code.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    # What one request answers with: events as CloudWatch has them.
    Ask = Callable[[int], list[dict[str, Any]]]

GROUPS = "/stream-sort/"
PAUSE = 0.5
# One answer has that many events at most, and MiniStack gives no token for the rest.
PAGE = 10_000
# An event that comes in later than one with a later time.
OVERLAP = 5_000
TIMEOUT = 10.0


def all_events(ask: Ask, since: int) -> Iterator[dict[str, Any]]:
    """Yield every event from a time on, in order; `ask` gives a page that starts at a time."""
    while len(page := ask(since)) >= PAGE:
        last = page[-1]["timestamp"]
        if last == since:
            break
        yield from (event for event in page if event["timestamp"] < last)
        since = last
    yield from page


class LogKeeper:
    """Copies new events of all functions into a file, each time that it is told to."""

    def __init__(self, port: int, file: IO[str]) -> None:
        self._port = port
        self._file = file
        self._sizes: dict[str, int] = {}
        self._last: dict[str, int] = {}
        # MiniStack makes a stream for each run, and writes all of its events at once.
        self._kept: dict[tuple[str, str], int] = {}

    def keep(self) -> None:
        """Copy what is new."""
        for group in self._ask("DescribeLogGroups", logGroupNamePrefix=GROUPS)["logGroups"]:
            name, size = group["logGroupName"], group["storedBytes"]
            if size != self._sizes.get(name):
                self._copy(name)
                self._sizes[name] = size
        self._file.flush()

    def _copy(self, group: str) -> None:
        since = max(0, self._last.get(group, 0) - OVERLAP)
        found = list(all_events(lambda start: self._events(group, start), since))
        fresh = [event for event in found if (group, event["logStreamName"]) not in self._kept]
        for event in fresh:
            line = {"at": event["timestamp"], "step": group.rpartition("/")[2], "text": event["message"]}
            self._file.write(json.dumps(line) + "\n")
            self._kept[group, event["logStreamName"]] = event["timestamp"]
        self._last[group] = max([self._last.get(group, 0), *(event["timestamp"] for event in fresh)])
        self._kept = {
            stream: at for stream, at in self._kept.items() if at >= self._last.get(stream[0], 0) - 2 * OVERLAP
        }

    def _events(self, group: str, start: int) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = self._ask("FilterLogEvents", logGroupName=group, startTime=start)["events"]
        return events

    def _ask(self, action: str, **body: object) -> Any:
        scope = "local/20260101/us-east-1/logs/aws4_request"
        headers = {
            "Content-Type": "application/x-amz-json-1.1",
            "X-Amz-Target": f"Logs_20140328.{action}",
            # MiniStack reads who asks, and does not check the signature.
            "Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0",
        }
        link = http.client.HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT)
        try:
            link.request("POST", "/", json.dumps(body), headers)
            return json.load(link.getresponse())
        finally:
            link.close()


def main(port: int, path: str, command: list[str]) -> int:
    """Run the command to its end, and keep its logs meanwhile."""
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123  # a script of few imports
        keeper = LogKeeper(port, file)
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603  # the owner chose it
        while True:
            with suppress(subprocess.TimeoutExpired):
                code = child.wait(PAUSE)
                return code if code >= 0 else 128 - code
            # Not up yet, busy, or about to end.
            with suppress(OSError, ValueError, KeyError, http.client.HTTPException):
                keeper.keep()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
