"""Fetch, ack and fail by hand: what drives a delivery needs no handler, and changes none of its rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stream_sort import StoreUnavailable
from stream_sort.consume.delivery import Delivery
from stream_sort.model.consumption import Outcome, Wake
from tests.consumers import Clerk, Office, fail, fail_twice

if TYPE_CHECKING:
    from stream_sort import Batch, OrderedConsumer


@pytest.fixture
def office() -> Office:
    office = Office()
    office.put(*range(5))
    return office


def consumer_of(office: Office, **options: int) -> OrderedConsumer:
    return office.hire(Clerk(), batch_size=3, **options)


def fetched(delivery: Delivery) -> Batch:
    """The next batch, however many pieces of work it takes."""
    while not delivery.is_over:
        batch = delivery.fetch()
        if batch is not None:
            return batch
    raise AssertionError(delivery.served)


def test_what_is_acked_is_done_and_the_next_fetch_goes_on_behind_it(office: Office) -> None:
    consumer = consumer_of(office)
    delivery = Delivery(consumer._context, Wake("q"))
    first = fetched(delivery)
    delivery.ack(first, first.through)
    assert (first.seqs, consumer.checkpoint("q")) == ((0, 1, 2), 2)
    second = fetched(delivery)
    delivery.ack(second, second.through)
    assert delivery.fetch() is None
    assert (second.seqs, delivery.is_over) == ((3, 4), True)
    assert (delivery.served.ended, delivery.served.delivered) == (Outcome.DONE, 5)


def test_what_is_not_acked_comes_again(office: Office) -> None:
    consumer = consumer_of(office)
    fetched(Delivery(consumer._context, Wake("q")))
    delivery = Delivery(consumer._context, Wake("q"))
    delivery.ack(fetched(delivery), 1)
    assert (consumer.checkpoint("q"), fetched(delivery).seqs) == (1, (2, 3, 4))


def test_a_batch_that_fails_comes_in_smaller_ones_until_its_message_is_parked(office: Office) -> None:
    consumer = consumer_of(office)
    delivery, given = Delivery(consumer._context, Wake("q")), []
    while not delivery.is_over:
        batch = delivery.fetch()
        if batch is not None:
            given.append(batch.seqs)
            delivery.fail(batch, ValueError("no"))
    assert given == [(0, 1, 2), (0,), (0,)]
    assert (delivery.served.ended, [one.seq for one in consumer.parked()]) == (Outcome.PARKED, [0])


def test_what_kept_the_rest_of_a_batch_is_looked_for_in_the_rest_alone(office: Office) -> None:
    consumer = office.hire(Clerk(), max_attempts=1)
    delivery = Delivery(consumer._context, Wake("q"))
    delivery.ack(fetched(delivery), 1, error=ValueError("no"))
    suspect = fetched(delivery)
    delivery.fail(suspect, ValueError("no"))
    assert (suspect.seqs, consumer.checkpoint("q")) == ((2,), 1)
    assert [one.seq for one in consumer.parked()] == [2]


def test_of_two_claims_on_one_batch_one_is_overtaken(office: Office) -> None:
    consumer = consumer_of(office)
    one, other = Delivery(consumer._context, Wake("q")), Delivery(consumer._context, Wake("q"))
    batch, same = fetched(one), fetched(other)
    one.ack(batch, batch.through)
    other.ack(same, same.through)
    assert (batch.seqs, one.is_over) == (same.seqs, False)
    assert (other.served.ended, other.served.delivered) == (Outcome.OVERTAKEN, 0)


def test_a_store_out_of_reach_is_an_outcome_of_each_step(office: Office) -> None:
    consumer = consumer_of(office)
    store = office.interrupt(consumer)
    store.before["standing"] = [fail]
    delivery = Delivery(consumer._context, Wake("q"))
    assert delivery.fetch() is None
    assert (delivery.served.ended, type(delivery.served.error)) == (Outcome.FAILED, StoreUnavailable)
    again = Delivery(consumer._context, Wake("q"))
    batch = fetched(again)
    store.before["commit"] = fail_twice(store)
    again.ack(batch, batch.through)
    assert (again.served.ended, consumer.checkpoint("q")) == (Outcome.FAILED, -1)
