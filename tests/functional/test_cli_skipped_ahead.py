"""What the commands say of a seq that was skipped beyond all that is stored: nothing waits."""

from __future__ import annotations

import pytest

from stream_sort import OrderedConsumer, StreamSorter
from tests.functional.command_line import VARIABLES, Line


@pytest.fixture
def line(sorter: StreamSorter, monkeypatch: pytest.MonkeyPatch) -> Line:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    OrderedConsumer("process", sorter=sorter).create_tables()
    sorter.put_many({"queue": "q1", "seq": seq} for seq in range(4))
    line = Line()
    line.run("policy", "q1", "--set", "skip after 30s", "--yes")
    line.run("skip", "q1", "10", "--yes")
    return line


def test_explain_says_that_nothing_waits_and_leads_to_no_skip(line: Line) -> None:
    told = line.run("explain", "q1").stdout
    assert "Nothing waits: all that is stored is released." in told
    assert "Skipped in advance: seq 10. The queue passes over it when it gets there." in told
    assert "It waits" not in told
    assert "sweep" not in told
    assert "To unblock it" not in told
    assert line.json("explain", "q1")["commands"] == []


def test_explain_tells_a_skip_in_advance_beside_what_waits(line: Line, sorter: StreamSorter) -> None:
    sorter.put({"queue": "q1", "seq": 6})
    told = line.run("explain", "q1").stdout
    assert "It waits for seq 4-5, since " in told
    assert "Stored beyond that: 1 message.\n" in told
    assert "Skipped in advance: seq 10." in told
    assert "stream-sort skip q1 4-5\n" in told


def test_status_counts_no_skip_in_advance_as_waiting(line: Line) -> None:
    (seen,) = line.json("status", "--deep")["lines"]
    assert (seen["waiting"], seen["gap_age"]) == (0, None)


def test_the_report_shows_nothing_as_still_missing(line: Line) -> None:
    page = line.run("report", "-o", "-").stdout
    assert "still missing after" not in page
