"""What functions log, for people: one line an event, without what only machines read."""

from __future__ import annotations

import json
import re
import time
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

# What Lambda itself writes about each run.
PLATFORM = re.compile(r"(START|END|REPORT|INIT_START|INIT_REPORT) ?(RequestId|Runtime|Init)")
NOT_STARTED = "ERROR the function did not start"
TRACEBACK = "Traceback (most recent call last):"
# What Lambda says of a run that its function did not survive; AWS puts the time and the request before it.
CUT_SHORT = re.compile(
    r"(?:\d{4}-\d\d-\d\dT\S+ )?(?:(?:RequestId: )?[0-9a-f][0-9a-f-]* )?(?:Error: )?"
    r"(Worker process (?:died|exited\b.*)|Task timed out after \d+(?:\.\d+)? seconds|"
    r"Runtime exited (?:before|with error)\b.*)",
    re.DOTALL,
)
FRAME = re.compile(r'  File "(.+)", line (\d+)')
# Keys that say nothing more than the rest of the record does; an exception is told in short.
KNOWN = {
    "level",
    "location",
    "message",
    "timestamp",
    "service",
    "request_id",
    "xray_trace_id",
    "sampling_rate",
    "ended",
    "traceback",
}
EXCEPTION = {"exception", "exception_name", "stack_trace"}
# What the sweep logs of a gap.
GAP = {"from", "to", "length", "age", "gap"}
STEPS = ("enqueue", "advance", "process", "sweep")


class LineKind(Enum):
    """Who speaks, and how bad it is."""

    OWN = ">"
    ERROR = "!"
    WARNING = "?"
    NOTE = " "


class LogLine(NamedTuple):
    """One line that a function wrote; `at` is in milliseconds."""

    at: int
    step: str
    text: str


class Event(NamedTuple):
    """One line for people: a print of the user's, an error, a warning or a note."""

    at: int
    step: str
    kind: LineKind
    text: str


def readable(lines: Iterable[LogLine]) -> Iterator[Event]:
    """Yield an event for each line that people read; the lines of a traceback are one event."""
    open_traceback: list[LogLine] = []
    for line in lines:
        if open_traceback and (line.step != open_traceback[0].step or line.text.startswith(("{", TRACEBACK, "END "))):
            yield _failure(open_traceback)
            open_traceback = []
        if open_traceback or line.text.startswith(TRACEBACK):
            open_traceback.append(line)
            # The first line that is not indented ends it: the exception.
            if len(open_traceback) > 1 and not line.text.startswith(" "):
                yield _failure(open_traceback)
                open_traceback = []
        elif (event := _event(line)) is not None:
            yield event
    if open_traceback:
        yield _failure(open_traceback)


def _event(line: LogLine) -> Event | None:
    if not line.text.strip() or PLATFORM.match(line.text):
        return None
    if line.text.startswith(NOT_STARTED):
        return Event(line.at, line.step, LineKind.ERROR, line.text.removeprefix("ERROR ").splitlines()[0])
    if found := CUT_SHORT.fullmatch(line.text.strip()):
        return Event(line.at, line.step, LineKind.ERROR, found[1])
    record = _record(line.text)
    if record is None:
        return Event(line.at, line.step, LineKind.OWN, line.text)
    if "_aws" in record or _is_idle(record):
        return None
    return Event(line.at, line.step, _kind(record), _describe(record))


def _record(text: str) -> dict[str, Any] | None:
    """Parse a line of metrics or of a logger; None if it is anything else."""
    if not text.startswith("{"):
        return None
    try:
        record = json.loads(text)
    except ValueError:
        return None
    return record if "_aws" in record or {"level", "message"} <= record.keys() else None


def _is_idle(record: Mapping[str, Any]) -> bool:
    """Return True for a sweep that found nothing to do: there is one a minute."""
    return record["message"] == "swept" and not any(
        value for name, value in record.items() if name not in KNOWN | {"complete", "looked_at"}
    )


def _kind(record: Mapping[str, Any]) -> LineKind:
    if record["level"] in {"ERROR", "CRITICAL"}:
        return LineKind.ERROR
    if record.get("service") not in STEPS:
        return LineKind.OWN
    return LineKind.WARNING if record["level"] == "WARNING" else LineKind.NOTE


def _describe(record: Mapping[str, Any]) -> str:
    """Describe a record: message, error and its place in the user's code, and the facts in brackets."""
    message = record["message"] if isinstance(record["message"], str) else json.dumps(record["message"])
    error = record.get("error") or _exception(record)
    place = record.get("at") if error and record.get("service") in STEPS else None
    told_before = KNOWN | EXCEPTION | {"error"} | ({"at"} if place else set())
    facts = {name: value for name, value in record.items() if name not in told_before}
    told = ", ".join(f"{name} {value}" for name, value in _facts(facts))
    where = f" at {place}" if place else ""
    return f"{message}{f': {error}' if error else ''}{where}{f' ({told})' if told else ''}"


def _facts(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what is worth reading: no zeros but those that are seqs, and a gap as the seqs that it is."""
    is_gap = facts.keys() >= GAP
    for name, value in facts.items():
        if is_gap and name == "from":
            first, last = value, facts["to"]
            yield ("seq", f"{first}") if first == last else ("seqs", f"{first} to {last}")
        elif is_gap and name == "age" and isinstance(value, int | float):
            yield "age", f"{value:.0f} s"
        elif not (is_gap and name in GAP) and (name == "seq" or value not in (None, 0, {}, [])):
            yield name, _value(name, value)


def _value(name: str, value: Any) -> str:
    if name == "next_try" and isinstance(value, int | float):
        return time.strftime("%H:%M:%S", time.localtime(value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _exception(record: Mapping[str, Any]) -> str:
    trace = record.get("exception")
    return _short(trace.splitlines()) if isinstance(trace, str) and trace else ""


def _failure(lines: list[LogLine]) -> Event:
    return Event(lines[0].at, lines[0].step, LineKind.ERROR, _short([line.text for line in lines]))


def _short(trace: list[str]) -> str:
    """Return a traceback in one line: the exception, and where it was raised."""
    places = [found for line in trace if (found := FRAME.match(line))]
    place = f" ({PurePath(places[-1][1]).name}:{places[-1][2]})" if places else ""
    return f"{trace[-1].strip()}{place}"
