"""A consumer that a stack runs, and that never began: its module raises at import, say."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stream_sort import OrderedConsumer, StreamSorter
from stream_sort.insight.explanation import explanation_of
from stream_sort.insight.overview import look
from stream_sort.insight.sources import OwnConsumer
from stream_sort.testing.clock import MovableClock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.insight.sources import Sources

OWN = OwnConsumer("process", "earliest", "stream-sort local logs process")


def command(*words: str, options: Sequence[str] = ()) -> str:
    return " ".join([*words, *options])


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def sorter(clock: MovableClock) -> StreamSorter:
    sorter = StreamSorter.in_memory(clock=clock)
    sorter.put_many({"queue": queue, "seq": seq} for queue in ("ada", "bob") for seq in range(2))
    return sorter


@pytest.fixture
def sources(sorter: StreamSorter) -> Sources:
    return replace(sorter.sources("Control"), own=OWN)


def test_status_counts_what_is_due_for_a_consumer_that_never_began(sources: Sources) -> None:
    seen = look(sources)
    assert seen.consumers == ("process",)
    assert [line.lag for line in seen.lines] == [{"process": 2}, {"process": 2}]
    assert "2 not all consumed" in seen.summary
    assert seen.not_begun == {"process": "4 messages are due; see stream-sort local logs process"}


def test_explain_says_of_a_queue_that_its_consumer_never_began(sources: Sources) -> None:
    told = explanation_of(sources, "ada", command).sentences
    assert told[-1] == ("Consumer 'process' has not begun: 2 messages are due; see stream-sort local logs process.")


def test_a_consumer_that_ran_or_was_retired_is_not_said_to_begin(sorter: StreamSorter, sources: Sources) -> None:
    consumer = OrderedConsumer("process", lambda _: None, sorter=sorter, control_table="Control")
    consumer.catch_up("ada")
    assert look(sources).not_begun == {}
    assert [line.lag["process"] for line in look(sources).lines] == [2, 0]
    consumer.retire()
    assert (look(sources).consumers, look(sources).not_begun) == ((), {})


def test_a_queue_behind_one_that_kills_the_process_is_explained_with_where_the_logs_are(
    clock: MovableClock, sorter: StreamSorter, sources: Sources
) -> None:
    OrderedConsumer("process", lambda _: None, sorter=sorter, control_table="Control").catch_up("bob")
    sorter.put({"queue": "bob", "seq": 2})
    said = "Its log says if its process dies of a message, in whatever queue: stream-sort local logs process"
    assert said not in explanation_of(sources, "bob", command).sentences
    clock.move(60)
    assert said in explanation_of(sources, "bob", command).sentences
    # Of a consumer of the user's own, nobody knows where it logs.
    assert said not in explanation_of(sorter.sources("Control"), "bob", command).sentences


def test_nothing_due_is_nothing_to_say_of_a_consumer_that_never_began() -> None:
    sources = replace(StreamSorter.in_memory().sources("Control"), own=OWN)
    assert look(sources).not_begun == {}
