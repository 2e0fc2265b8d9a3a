"""What a consumer delivers: in order, in chunks, each queue in turn, nothing missing."""

from __future__ import annotations

import pytest

from stream_sort import Batch, InvalidInput, InvalidQueue, OrderedConsumer, SettingsError, StreamSorter
from stream_sort.model.consumption import Wake
from stream_sort.model.message import KeyNames, check_message
from stream_sort.model.records import Arrival
from tests.consumers import Clerk, Office, ends, wake


@pytest.fixture
def office() -> Office:
    return Office()


@pytest.fixture
def clerk() -> Clerk:
    return Clerk()


def test_i3_messages_come_in_order_in_chunks_with_nothing_missing(office: Office, clerk: Clerk) -> None:
    consumer = office.hire(clerk, batch_size=3)
    office.put(4, 2, 0, 3, 6, 1, 5)
    (served,) = wake(consumer)
    assert clerk.batches == [("q", (0, 1, 2)), ("q", (3, 4, 5)), ("q", (6,))]
    assert (served.delivered, served.ended, consumer.checkpoint("q")) == (7, "done", 6)


def test_the_checkpoint_follows_each_chunk(office: Office) -> None:
    seen = []
    consumer = office.hire(lambda _: seen.append(consumer.checkpoint("q")), batch_size=2)
    office.put(*range(5))
    wake(consumer)
    assert [*seen, consumer.checkpoint("q")] == [-1, 1, 3, 4]


def test_a_batch_tells_its_range_its_messages_and_its_seqs(office: Office) -> None:
    batches = []
    office.put(0, 2)
    office.sorter.skip("q", [1, 3])
    wake(office.hire(batches.append))
    (batch,) = batches
    assert (batch.queue, batch.after, batch.through, batch.seqs, len(batch)) == ("q", -1, 3, (0, 2), 2)
    assert list(batch) == [{"queue": "q", "seq": 0}, {"queue": "q", "seq": 2}]
    assert (batch[1]["seq"], batch.attempt) == (2, 1)


def test_what_waits_behind_a_gap_is_not_delivered(office: Office, clerk: Clerk) -> None:
    consumer = office.hire(clerk)
    office.put(0, 2, 3)
    wake(consumer)
    assert clerk.seqs() == [0]
    office.put(1)
    wake(consumer)
    assert clerk.seqs() == [0, 1, 2, 3]


def test_chunks_of_nothing_but_tombstones_are_passed_without_the_handler(office: Office, clerk: Clerk) -> None:
    consumer = office.hire(clerk, batch_size=2)
    office.put(0, 7)
    office.sorter.skip("q", range(1, 7))
    wake(consumer)
    assert clerk.batches == [("q", (0,)), ("q", (7,))]
    assert consumer.checkpoint("q") == 7


def test_i7_each_queue_gets_one_chunk_in_turn(office: Office, clerk: Clerk) -> None:
    consumer = office.hire(clerk, batch_size=2)
    office.put(*range(6), queue="long")
    office.put(0, queue="short")
    office.put(0, 1, 2, queue="middle")
    wake(consumer, "long", "short", "middle")
    assert [queue for queue, _ in clerk.batches] == ["long", "short", "middle", "long", "middle", "long"]


def test_i7_a_failing_queue_delays_no_other(office: Office, clerk: Clerk) -> None:
    consumer = office.hire(clerk, batch_size=4)
    clerk.poison = {100}
    office.put(0, 1, queue="good")
    office.sorter.open("bad", first_seq=100)
    office.put(100, queue="bad")
    assert ends(wake(consumer, "bad", "good")) == ["parked", "done"]
    assert clerk.seqs("good") == [0, 1]


def test_a_queue_named_twice_in_one_event_is_looked_at_once(office: Office, clerk: Clerk) -> None:
    consumer = office.hire(clerk)
    office.put(0, 1)
    served = consumer.process([Wake("q", 0, ("a",)), Wake("q", 1, ("b",)), Wake("q", 1)])
    assert [(one.queue, one.delivered) for one in served] == [("q", 2)]


def test_several_consumers_each_have_their_own_checkpoint(office: Office) -> None:
    first, second = Clerk(), Clerk(poison={1})
    billing, audit = office.hire(first, batch_size=1), office.hire(second, "audit", batch_size=1)
    office.put(0, 1, 2)
    assert ends(wake(billing) + wake(audit)) == ["done", "parked"]
    assert (first.seqs(), second.seqs()) == ([0, 1, 2], [0])
    assert (billing.checkpoint("q"), audit.checkpoint("q")) == (2, 0)


def test_i8_what_a_dead_writer_left_behind_the_position_is_released_and_delivered(office: Office, clerk: Clerk) -> None:
    consumer = office.hire(clerk)
    office.put(0)
    stored = StreamSorter.in_memory()
    stored.put_many([{"queue": "q", "seq": seq} for seq in range(3)])
    for slot in stored.stores.items.page("q", 0, 2, 5).slots:
        office.sorter.stores.items._tables.queues["q"].fill(slot)  # type: ignore[attr-defined]
    wake(consumer)
    assert (clerk.seqs(), office.sorter.position("q")) == ([0, 1, 2], 2)


def test_a_nudge_of_a_finished_queue_costs_one_request(office: Office, clerk: Clerk) -> None:
    consumer = office.hire(clerk)
    office.put(0)
    wake(consumer)
    store = office.interrupt(consumer)
    assert ends(wake(consumer, position=0)) == ["done"]
    assert store.calls == ["standing"]


def test_a_wake_of_a_queue_with_nothing_released_costs_one_request_and_leaves_no_row(
    office: Office, clerk: Clerk
) -> None:
    consumer = office.hire(clerk)
    office.put(5)
    store = office.interrupt(consumer)
    consumer.process([Wake("q", -1), Wake("nowhere", 3)])
    assert store.calls == ["standing", "standing"]
    assert (office.row(), clerk.batches) == (None, [])


def test_a_queue_that_is_opened_elsewhere_after_a_first_wake_is_delivered_from_there(
    office: Office, clerk: Clerk
) -> None:
    consumer = office.hire(clerk)
    office.put(1_000)
    wake(consumer)
    office.sorter.open("q", first_seq=1_000)
    assert ends(wake(consumer)) == ["done"]
    assert clerk.seqs() == [1_000]


def test_catch_up_delivers_what_is_due_and_tells_how_many(office: Office, clerk: Clerk) -> None:
    consumer = office.hire(clerk, batch_size=2)
    office.put(0, 1, 2)
    assert (consumer.catch_up("q"), consumer.catch_up("q"), consumer.catch_up("nowhere")) == (3, 0, 0)
    assert clerk.seqs() == [0, 1, 2]


def test_the_checkpoint_of_an_untouched_queue_is_before_its_first_message(office: Office, clerk: Clerk) -> None:
    consumer = office.hire(clerk)
    assert consumer.checkpoint("q") == -1
    office.sorter.open("q", first_seq=10)
    assert consumer.checkpoint("q") == 9


def test_two_runs_of_one_name_share_one_checkpoint(office: Office) -> None:
    first, second = Clerk(), Clerk()
    office.put(0, 1)
    wake(office.hire(first))
    office.put(2)
    wake(office.hire(second))
    assert (first.seqs(), second.seqs()) == ([0, 1], [2])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": "a b"}, "1 to 64 letters"),
        ({"name": "a#b"}, "1 to 64 letters"),
        ({"name": ""}, "1 to 64 letters"),
        ({"name": 7}, "1 to 64 letters"),
        ({"handler": "print"}, "function that takes a batch"),
        ({"batch_size": 0}, "greater than 0"),
        ({"batch_size": "9"}, "of type int"),
        ({"max_attempts": True}, "of type int"),
        ({"on_poison": "drop"}, "'park' or 'dead_letter'"),
        ({"start": "tomorrow"}, "'earliest', 'latest' or a seq"),
        ({"start": True}, "'earliest', 'latest' or a seq"),
        ({"start": 2**63}, "'earliest', 'latest' or a seq"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_i9_a_consumer_that_cannot_work_is_refused_with_the_reason(options: dict[str, object], said: str) -> None:
    given = {"name": "billing", "handler": print, **options}
    name, handler = given.pop("name"), given.pop("handler")
    with pytest.raises(SettingsError, match=said):
        OrderedConsumer(name, handler, sorter=StreamSorter.in_memory(), **given)  # type: ignore[arg-type]


def test_i9_bad_arguments_are_named(office: Office, clerk: Clerk) -> None:
    consumer = office.hire(clerk)
    for call in (consumer.catch_up, consumer.checkpoint, consumer.redrive):
        with pytest.raises(InvalidQueue):
            call("")
    with pytest.raises(InvalidInput, match="seq is an int"):
        consumer.redrive("q", "5")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="seq is an int"):
        consumer.discard("q", 1.5, "why not")  # type: ignore[arg-type]
    for reason in ("", "x" * 257, "\ud800", None):
        with pytest.raises(InvalidInput, match="a reason is text"):
            consumer.discard("q", 5, reason)  # type: ignore[arg-type]


def test_i7_a_long_backlog_behind_the_position_is_released_a_piece_a_turn() -> None:
    sorter = StreamSorter.in_memory(max_advance=10)
    sorter.put_many({"queue": "q", "seq": seq} for seq in (0, *range(2, 1_000)))
    assert sorter.stores.items.put(Arrival(check_message({"queue": "q", "seq": 1}, KeyNames()), 0), 0.0) is None
    positions: list[int] = []

    def handle(batch: Batch) -> None:
        if batch.queue == "q":
            positions.append(sorter.position("q"))

    consumer = OrderedConsumer("billing", handle, sorter=sorter)
    sorter.put({"queue": "other", "seq": 0})
    consumer.process([Wake("q"), Wake("other")])
    assert positions[0] == 0
    assert positions[1] < 500
    assert (consumer.checkpoint("q"), consumer.checkpoint("other")) == (999, 0)
