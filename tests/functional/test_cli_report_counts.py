"""What the page of `stream-sort report` counts over time is all there is, or it says that it is not."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import pytest

from stream_sort import OrderedConsumer, StreamSorter
from stream_sort.testing.clock import MovableClock
from tests.functional.command_line import VARIABLES, Line

if TYPE_CHECKING:
    from pathlib import Path

    from tests.functional.conftest import Table

MINUTE = 60.0


@pytest.fixture
def line(dynamo: Table, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    assert dynamo.client
    monkeypatch.chdir(tmp_path)
    return Line()


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock(time.time() - 10 * MINUTE)


@pytest.fixture
def past(dynamo: Table, clock: MovableClock) -> StreamSorter:
    """A sorter that lives ten minutes ago."""
    sorter = StreamSorter(client=dynamo.client, clock=clock, in_flight=1, deadline=0.02)
    OrderedConsumer("process", sorter=sorter).create_tables()
    return sorter


def drawn(line: Line, chart: str, *words: str) -> list[str]:
    """What the bars of a chart say when they are pointed at."""
    page = line.run("report", "-o", "-", *words).stdout
    found = [one for one in page.split("<svg")[1:] if f"drawing {chart}-880" in one]
    return re.findall(r"<title>([^<]*)</title>", found[0].partition("</svg>")[0]) if found else []


def counted(line: Line, word: str, *words: str) -> int:
    """How many messages the bars say in all."""
    tips = drawn(line, "traffic", *words)
    return sum(int(found[1].replace(",", "")) for tip in tips if (found := re.search(rf"([\d,]+) \w+ {word}$", tip)))


def test_the_bars_of_a_long_queue_count_every_message_of_the_period(line: Line, past: StreamSorter) -> None:
    past.put_many({"queue": "long", "seq": seq} for seq in range(70))
    few = ("--messages", "20")
    assert (counted(line, "arrived", *few), counted(line, "released", *few)) == (70, 70)


def test_the_bars_count_the_messages_of_all_queues_not_of_the_worst(line: Line, past: StreamSorter) -> None:
    past.put_many({"queue": f"queue-{number:02}", "seq": seq} for number in range(20) for seq in range(3))
    assert (counted(line, "arrived"), counted(line, "released")) == (60, 60)


def test_a_skip_of_two_minutes_ago_is_in_the_chart_whatever_came_after_it(
    line: Line, past: StreamSorter, clock: MovableClock
) -> None:
    past.put_many({"queue": "mended", "seq": seq} for seq in range(70) if seq != 5)
    clock.move(8 * MINUTE)
    past.skip("mended", 5, "lost by the partner")
    tips = [tip for tip in drawn(line, "gaps", "--messages", "20") if "skipped" in tip]
    assert [tip.partition(":")[0] for tip in tips] == ["seq 5"]


def test_a_skip_in_a_queue_that_is_well_is_in_the_chart(line: Line, past: StreamSorter, clock: MovableClock) -> None:
    for name in ("ada", "bob"):
        past.put_many({"queue": name, "seq": seq} for seq in (0, 2))
    past.put_many({"queue": "mended", "seq": seq} for seq in (0, 2))
    clock.move(8 * MINUTE)
    past.skip("mended", 1, "lost by the partner")
    assert [tip for tip in drawn(line, "gaps", "--queues", "2") if "skipped" in tip]


def test_a_skip_that_nothing_waited_behind_is_in_the_chart(line: Line, past: StreamSorter) -> None:
    past.put({"queue": "ada", "seq": 0})
    past.skip("ada", [1, 2], "never sent")
    tips = [tip for tip in drawn(line, "gaps") if "skipped" in tip]
    assert [tip.partition(":")[0] for tip in tips] == ["seq 1-2"]


def test_the_page_the_screen_and_the_json_say_how_many(line: Line, past: StreamSorter) -> None:
    past.put_many({"queue": name, "seq": seq} for name in ("ada", "bob") for seq in (0, 1, 3))
    past.skip("ada", 2)
    told = "In the last 15 min, in all 2 queues: 6 messages arrived, 5 were released and 1 seq was skipped."
    assert told in line.run("report").stdout
    assert told in line.run("report", "-o", "-").stdout
    period = line.json("report")["period"]
    assert [period[name] for name in ("arrived", "released", "skipped", "complete")] == [6, 5, 1, True]
    assert period["end"] - period["begin"] == 15 * MINUTE


def test_a_period_that_is_asked_for_is_the_one_that_is_counted(
    line: Line, past: StreamSorter, clock: MovableClock
) -> None:
    past.put_many({"queue": "ada", "seq": seq} for seq in range(5))
    clock.move(7 * MINUTE)
    past.put_many({"queue": "ada", "seq": seq} for seq in range(5, 8))
    assert counted(line, "arrived", "--period", "5m") == 3
    assert counted(line, "arrived", "--period", "1d") == 8
    told = line.run("report", "-o", "-", "--period", "30s").stdout
    assert "No message arrived and no seq was skipped in the last 30 s." in told
    assert "is no duration; write one as" in line.error("report", "--period", "soon", code=2)


def test_where_the_reads_do_not_suffice_the_page_says_so_and_shades_it(
    line: Line, past: StreamSorter, clock: MovableClock
) -> None:
    for minute in range(8):
        past.put_many({"queue": "long", "seq": 15 * minute + seq} for seq in range(15))
        past.put({"queue": f"short-{minute}", "seq": 0})
        clock.move(MINUTE)
    period = line.json("report", "--reads", "1")["period"]
    assert (period["arrived"], period["complete"]) == (100, False)
    assert period["begin"] < period["complete_since"] <= period["end"]
    text = line.run("report", "-o", "-", "--reads", "1").stdout
    assert "at least 100 messages arrived and 100 were released. " in text
    assert "1 read was not enough for 9 of 9 active queues. Give more with --reads, or a shorter --period." in text
    assert "Not all of it was read in 9 queues." in text
    assert [tip for tip in drawn(line, "traffic", "--reads", "1") if tip.startswith("not all is counted before")]
    assert [
        tip for tip in drawn(line, "traffic", "--reads", "1") if re.search(r": at least \d+ messages arrived$", tip)
    ]
    assert line.json("report")["period"]["arrived"] == 8 * 16
    assert "not all is counted" not in "".join(drawn(line, "traffic"))


def test_what_was_trimmed_since_is_not_counted_and_that_is_said(line: Line, past: StreamSorter) -> None:
    past.put_many({"queue": "ada", "seq": seq} for seq in range(30))
    past.trim("ada", 19, control_table=None)
    told = line.run("report").stdout
    assert "at least 10 messages arrived and 10 were released." in told
    assert "What was trimmed in 1 queue meanwhile is not counted." in told


def test_a_queue_that_was_trimmed_long_ago_is_counted_in_full(
    line: Line, past: StreamSorter, clock: MovableClock
) -> None:
    clock.move(-120 * MINUTE)
    past.put_many({"queue": "ada", "seq": seq} for seq in range(30))
    past.put({"queue": "ada", "seq": 30})
    past.trim("ada", 19, control_table=None)
    clock.move(115 * MINUTE)
    past.put_many({"queue": "ada", "seq": seq} for seq in (31, 32))
    period = line.json("report", "--period", "30m")["period"]
    assert (period["arrived"], period["complete"]) == (2, True)
