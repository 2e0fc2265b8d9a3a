"""What a wake costs: at most 4 requests, and 1 for each chunk and each page of messages. Counted, not timed.

Who gets on pays nothing for the precautions against messages that kill their process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from stream_sort import Batch, OrderedConsumer, StreamSorter
from stream_sort.model.consumption import Wake
from stream_sort.model.retries import LONGEST_RUN
from stream_sort.testing.clock import MovableClock
from tests.benchmarks.meter import Meter, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BAR = 4


class Bench:
    """A table each, a consumer as a cold function has it, and a meter on its client."""

    def __init__(self, client: Any) -> None:
        self.clock = MovableClock()
        self.sorter = StreamSorter(client=client, in_flight=1, clock=self.clock)
        self.sorter.create_tables()
        self.meter = Meter(client)
        self.client = client
        first = self.hire(lambda _: None)
        first.create_tables()
        # The row that makes the consumer known is written once in its life; every other process reads it once.
        first.process([])

    def hire(self, handler: Callable[[Batch], object], **options: Any) -> OrderedConsumer:
        return OrderedConsumer("billing", handler, sorter=self.sorter, **options)

    def rest(self, consumer: OrderedConsumer, seconds: float) -> None:
        """Let time pass, and the consumer read its registration again, as it does once a minute."""
        self.clock.move(seconds)
        consumer.process([])

    def put(self, count: int, first: int = 0, **fields: Any) -> None:
        self.sorter.put_many([{"queue": "q", "seq": first + number, **fields} for number in range(count)])

    def wake(self, consumer: OrderedConsumer, position: int | None = None) -> Usage:
        with self.meter.measure() as usage:
            consumer.process([Wake("q", position)])
        return usage


@pytest.fixture
def bench() -> Iterator[Bench]:
    with mock_aws():
        client = boto3.client("dynamodb", region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="y")
        yield Bench(client)
        client.close()


def pages_and_chunks(usage: Usage) -> int:
    return usage.operations["Query"] + usage.operations["TransactWriteItems"]


def test_the_first_wake_of_a_cold_function_stays_within_the_bar(bench: Bench) -> None:
    bench.put(250)
    usage = bench.wake(bench.hire(lambda _: None), 249)
    pages = chunks = 3
    assert usage.operations == {"GetItem": 1, "PutItem": 1 + chunks, "BatchGetItem": 2, "Query": pages}
    assert usage.requests <= BAR + pages + chunks


@pytest.mark.parametrize(("count", "batch_size"), [(1, 100), (100, 100), (101, 100), (60, 7)])
def test_a_wake_costs_two_reads_and_a_page_and_a_commit_for_each_chunk(
    bench: Bench, count: int, batch_size: int
) -> None:
    consumer = bench.hire(lambda _: None, batch_size=batch_size)
    bench.put(1)
    bench.wake(consumer)
    bench.put(count, 1)
    usage = bench.wake(consumer, count)
    chunks = -(-count // batch_size)
    assert usage.operations == {"BatchGetItem": 2, "Query": chunks, "PutItem": chunks}
    assert usage.requests <= BAR + 2 * chunks


def test_a_wake_with_effects_costs_no_more(bench: Bench) -> None:
    def handle(batch: Batch) -> None:
        for seq in batch.seqs:
            batch.transaction.put("Items", {"queue": "effects", "seq": seq})

    bench.put(100)
    usage = bench.wake(bench.hire(handle, batch_size=50), 99)
    assert usage.operations["TransactWriteItems"] == 2
    assert usage.requests <= BAR + pages_and_chunks(usage)


def test_a_nudge_of_a_finished_queue_costs_one_request(bench: Bench) -> None:
    consumer = bench.hire(lambda _: None)
    bench.put(10)
    bench.wake(consumer)
    assert bench.wake(consumer, 9).operations == {"BatchGetItem": 1}
    assert bench.wake(consumer).requests <= 2


def test_a_wake_of_a_parked_queue_costs_one_request(bench: Bench) -> None:
    consumer = bench.hire(lambda batch: batch.after, batch_size=1)
    bench.put(10)
    bench.wake(consumer, 9)
    assert bench.wake(consumer, 9).operations == {"BatchGetItem": 1}


def test_a_wake_that_finds_what_a_dead_writer_left_stays_near_the_bar(bench: Bench) -> None:
    consumer = bench.hire(lambda _: None)
    bench.put(10)
    bench.wake(consumer)
    bench.client.put_item(TableName="Items", Item={"queue": {"S": "q"}, "seq": {"N": "10"}})
    usage = bench.wake(consumer, 9)
    advanced = usage.operations["GetItem"] + usage.operations["UpdateItem"]
    assert usage.requests - advanced <= BAR + pages_and_chunks(usage) + 1
    assert consumer.checkpoint("q") == 10


def test_a_consumer_reads_its_registration_once_a_minute_and_not_at_each_wake(bench: Bench) -> None:
    consumer = bench.hire(lambda _: None)
    bench.put(1)
    bench.wake(consumer)
    reads = []
    for _ in range(12):
        bench.clock.move(30)
        reads.append(bench.wake(consumer).operations["GetItem"])
    assert reads == [0, 1] * 6


@pytest.mark.parametrize("count", [1, 250])
def test_messages_that_come_after_a_long_rest_cost_no_more(bench: Bench, count: int) -> None:
    consumer = bench.hire(lambda _: None)
    bench.put(1)
    bench.wake(consumer)
    bench.rest(consumer, 10 * LONGEST_RUN)
    bench.put(count, 1)
    chunks = -(-count // 100)
    assert bench.wake(consumer, count).operations == {"BatchGetItem": 2, "Query": chunks, "PutItem": chunks}


def test_a_gap_that_is_filled_late_costs_no_more(bench: Bench) -> None:
    consumer = bench.hire(lambda _: None)
    bench.put(1)
    bench.wake(consumer)
    bench.put(5, 2)
    bench.rest(consumer, 10 * LONGEST_RUN)
    bench.put(1, 1)
    assert bench.wake(consumer, 6).operations == {"BatchGetItem": 2, "Query": 1, "PutItem": 1}


def test_a_consumer_that_is_new_to_old_messages_pays_no_more(bench: Bench) -> None:
    bench.put(250)
    bench.clock.move(10 * LONGEST_RUN)
    usage = bench.wake(bench.hire(lambda _: None), 249)
    assert usage.operations == {"GetItem": 1, "PutItem": 1 + 3, "BatchGetItem": 2, "Query": 3}


def test_a_message_that_failed_before_costs_one_note_more_and_only_that(bench: Bench) -> None:
    bench.put(2)
    failing = bench.hire(lambda batch: batch.after, batch_size=1, max_attempts=20)
    for _ in range(12):
        bench.wake(failing)
        (parked,) = failing.parked()
        assert parked.next_try is not None
        bench.clock.move(parked.next_try - bench.clock())
    assert bench.clock() - parked.since > LONGEST_RUN
    usage = bench.wake(bench.hire(lambda _: None), 1)
    # The note makes a death at this try count with the failures before it; the message behind has none.
    assert usage.operations == {"GetItem": 1, "BatchGetItem": 2, "Query": 2, "PutItem": 2 + 1}


def test_where_nobody_got_on_for_long_one_commit_more_is_made_and_only_for_the_first_chunk(bench: Bench) -> None:
    consumer = bench.hire(lambda _: None)
    bench.put(1)
    bench.wake(consumer)
    bench.put(250, 1)
    bench.rest(consumer, LONGEST_RUN)
    assert bench.wake(consumer, 250).operations == {"BatchGetItem": 2, "Query": 3, "PutItem": 3 + 1}
