"""Read models on tables in memory, with no command line around them."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from stream_sort import OrderedConsumer, QueueNotFound, StreamSorter
from stream_sort.insight.explanation import explanation_of
from stream_sort.insight.following import Follower
from stream_sort.insight.overview import look
from stream_sort.insight.report import ReportBounds, gather
from stream_sort.insight.rows import Choice
from stream_sort.testing.clock import MovableClock

if TYPE_CHECKING:
    from collections.abc import Sequence


def command(*words: str, options: Sequence[str] = ()) -> str:
    return " ".join([*words, *options])


@pytest.fixture
def sorter() -> StreamSorter:
    """Queue ada waits for seq 1, bob does not; billing has read both."""
    sorter = StreamSorter.in_memory(clock=MovableClock())
    sorter.put_many({"queue": queue, "seq": seq} for queue, seq in [("ada", 0), ("ada", 2), ("bob", 0), ("bob", 1)])
    consumer = OrderedConsumer("billing", lambda _: None, sorter=sorter, control_table="Control")
    assert [consumer.catch_up(queue) for queue in ("ada", "bob")] == [1, 2]
    return sorter


def test_the_overview_shows_all_queues_the_worst_first(sorter: StreamSorter) -> None:
    seen = look(sorter.sources("Control"))
    assert seen.consumers == ("billing",)
    assert [(line.queue, line.position, line.waits, line.lag) for line in seen.lines] == [
        ("ada", 0, True, {"billing": 0}),
        ("bob", 1, False, {"billing": 0}),
    ]


def test_without_a_control_table_no_consumer_is_known(sorter: StreamSorter) -> None:
    assert look(sorter.sources(), Choice(pattern="b*")).consumers == ()


def test_an_explanation_names_what_is_missing_and_the_commands_in_the_words_of_who_asks(sorter: StreamSorter) -> None:
    found = explanation_of(sorter.sources("Control"), "ada", command)
    assert "Consumer 'billing' is up to date (seq 0)." in found.sentences
    assert found.commands == ["skip ada 1"]
    with pytest.raises(QueueNotFound):
        explanation_of(sorter.sources("Control"), "nobody", command)


def test_the_report_gathers_the_same_queues_and_counts_what_came(sorter: StreamSorter) -> None:
    found = gather(sorter.sources("Control"), "*", ReportBounds())
    assert found.verdict.headline == "1 of 2 queues is in trouble"
    assert found.traffic.totals == (4, 3, 0)


def test_a_follower_shows_each_message_once_and_says_what_was_trimmed(sorter: StreamSorter) -> None:
    trims: list[tuple[str, int]] = []
    follower = Follower(
        sorter.sources(), sorter.read, ("bob",), lambda row, _: row.first_seq - 1, lambda *trim: trims.append(trim)
    )
    sorter.put({"queue": "bob", "seq": 2})
    assert [message["seq"] for message in follower.look()] == [0, 1, 2]
    assert list(follower.look()) == []
    sorter.put_many({"queue": "bob", "seq": seq} for seq in (3, 4))
    assert sorter.trim("bob", 3, control_table=None) > 0
    assert ([message["seq"] for message in follower.look()], trims) == ([4], [("bob", 3)])


def test_read_models_load_no_user_interface_and_no_sdk() -> None:
    code = """
import sys
from stream_sort.insight import consumers, explanation, following, overview, released, report
from stream_sort.insight.checkup import examination
from stream_sort.insight.costing import prices
print(sorted({"boto3", "botocore", "matplotlib", "pynamodb", "rich", "typer"} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
