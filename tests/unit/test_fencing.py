"""Two runs on one queue: of each commit one wins, the other stops, and nothing is left behind."""

from __future__ import annotations

from typing import Any

import pytest

from stream_sort import Batch, CheckpointConflict, StoreUnavailable
from stream_sort.consume.delivery import Delivery
from stream_sort.consume.push import turn
from stream_sort.model.consumption import Commit, Wake
from tests.consumers import Clerk, Office, ends, fail, fail_twice, wake


@pytest.fixture
def office() -> Office:
    return Office()


def rival(office: Office, clerk: Clerk, **options: Any) -> Any:
    """What another run of the same consumer does meanwhile."""
    other = office.hire(clerk, **options)
    return lambda: wake(other)


def test_the_loser_of_a_commit_stops(office: Office) -> None:
    mine, others = Clerk(), Clerk()
    consumer = office.hire(mine, batch_size=2)
    office.put(*range(6))
    office.interrupt(consumer).before["commit"] = [rival(office, others, batch_size=2)]
    (served,) = wake(consumer)
    assert (served.ended, served.delivered) == ("overtaken", 0)
    assert isinstance(served.error, CheckpointConflict)
    assert mine.batches == [("q", (0, 1))]
    assert others.seqs() == [0, 1, 2, 3, 4, 5]


def test_i4_effects_of_the_loser_do_not_happen(office: Office) -> None:
    def handle(batch: Batch) -> None:
        for seq in batch.seqs:
            batch.transaction.put("Effects", {"id": str(seq)})

    consumer, other = office.hire(handle), office.hire(handle)
    office.put(0, 1)
    office.interrupt(consumer).before["commit"] = [lambda: wake(other)]
    wake(consumer)
    effects = office.sorter.stores.control("Control").checkpoints._control.effects  # type: ignore[attr-defined]
    assert [effect.request["Item"]["id"] for effect in effects] == ["0", "1"]


def test_a_zombie_that_wakes_after_its_successor_changes_nothing(office: Office) -> None:
    zombie, successor = Clerk(), Clerk()
    consumer = office.hire(zombie, batch_size=1)
    office.put(0, 1, 2)
    store = office.interrupt(consumer)
    late = Delivery(consumer._context, Wake("q"))
    turn(late, zombie)
    assert not late.is_over
    rival(office, successor)()
    before = office.row()
    turn(late, zombie)
    assert late.is_over
    assert (late.served.ended, office.row()) == ("overtaken", before)
    assert store.calls.count("commit") == 2
    assert (zombie.seqs(), successor.seqs()) == ([0, 1], [1, 2])


def test_i8_what_the_loser_was_woken_for_is_seen_by_the_winner_after_its_last_commit(office: Office) -> None:
    lost, won = Clerk(), Clerk()
    loser = Delivery(office.hire(lost)._context, Wake("q", 1))

    def handle(batch: Batch) -> None:
        if not won.batches:
            office.put(1)
            assert loser._reader.look()
        won(batch)

    office.put(0)
    winner = Delivery(office.hire(handle)._context, Wake("q", 0))
    turn(winner, handle)
    assert not winner.is_over
    turn(loser, lost)
    assert loser.is_over
    assert (lost.batches, loser.served.ended) == ([("q", (0, 1))], "overtaken")
    while not winner.is_over:
        turn(winner, handle)
    assert (won.seqs(), winner.served.ended) == ([0, 1], "done")


def test_the_loser_of_the_first_row_goes_on_with_it(office: Office) -> None:
    mine, others = Clerk(), Clerk()
    consumer = office.hire(mine, batch_size=1)
    office.put(0, 1)

    def other_run() -> None:
        store = office.interrupt(other := office.hire(others))
        store.before["commit"] = fail_twice(store)
        assert ends(wake(other)) == ["failed"]

    office.interrupt(consumer).before["create"] = [other_run]
    assert ends(wake(consumer)) == ["done"]
    assert mine.seqs() == [0, 1]


def test_the_loser_of_the_first_row_finds_nothing_left_to_do(office: Office) -> None:
    mine, others = Clerk(), Clerk()
    consumer = office.hire(mine)
    office.put(0, 1)
    office.interrupt(consumer).before["create"] = [rival(office, others)]
    assert ends(wake(consumer)) == ["done"]
    assert (mine.batches, others.seqs()) == ([], [0, 1])


def test_the_loser_of_the_first_row_leaves_a_queue_that_was_parked_meanwhile(office: Office) -> None:
    mine = Clerk()
    consumer = office.hire(mine)
    office.put(0)
    office.interrupt(consumer).before["create"] = [rival(office, Clerk(poison={0}))]
    assert ends(wake(consumer)) == ["waiting"]
    assert mine.batches == []


def test_a_commit_of_our_own_that_was_sent_twice_is_no_defeat(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    clerk = Clerk()
    consumer = office.hire(clerk, batch_size=1)
    office.put(0, 1)
    commit = consumer._context.checkpoints.commit

    def sent_twice(*arguments: Any) -> Commit:
        commit(*arguments)
        return commit(*arguments)

    monkeypatch.setattr(office.interrupt(consumer), "commit", sent_twice, raising=False)
    assert ends(wake(consumer)) == ["done"]
    assert (clerk.seqs(), consumer.checkpoint("q")) == ([0, 1], 1)


def test_catch_up_goes_on_from_where_another_run_left_it(office: Office) -> None:
    mine, others = Clerk(), Clerk()
    consumer = office.hire(mine, batch_size=2)
    other = office.hire(others, batch_size=2)
    office.put(*range(6))
    office.interrupt(other).before["standing"] = []
    late = Delivery(other._context, Wake("q"))
    office.interrupt(consumer).before["commit"] = [lambda: turn(late, others)]
    assert consumer.catch_up("q") == 4
    assert (others.seqs(), mine.batches[1:]) == ([0, 1], [("q", (2, 3)), ("q", (4, 5))])


def test_a_checkpoint_that_was_deleted_meanwhile_stops_the_run(office: Office) -> None:
    consumer = office.hire(Clerk(), batch_size=1)
    office.put(0, 1)
    rows = office.sorter.stores.control("Control").checkpoints._control.checkpoints  # type: ignore[attr-defined]
    office.interrupt(consumer).before["commit"] = [rows.clear]
    assert ends(wake(consumer)) == ["overtaken"]
    assert rows == {}


def test_a_run_that_lost_to_the_end_of_a_parking_is_looked_after(office: Office) -> None:
    clerk = Clerk()
    consumer = office.hire(clerk)
    office.put(0)
    wake(consumer)
    row = office.lose_cursor()
    assert ends(wake(consumer)) == ["parked"]
    office.sorter.stores.cursors.create(row)
    office.clock.move(10)
    late = Delivery(consumer._context, Wake("q"))

    def somebody_is_woken_for_more() -> None:
        office.put(1)
        late._session.look(None)

    office.interrupt(consumer).before["commit"] = [somebody_is_woken_for_more]
    assert ends(wake(consumer)) == ["done"]
    assert (clerk.seqs(), consumer.checkpoint("q")) == ([0, 1], 1)
    turn(late, clerk)
    assert late.is_over
    assert late.served.ended == "overtaken"


@pytest.mark.parametrize("method", ["standing", "create", "commit"])
def test_a_store_out_of_reach_fails_the_queue_and_no_other(office: Office, method: str) -> None:
    clerk = Clerk()
    consumer = office.hire(clerk)
    office.put(0)
    office.put(0, queue="other")
    store = office.interrupt(consumer)
    store.before[method] = fail_twice(store) if method == "commit" else [fail]
    bad, good = wake(consumer, "q", "other")
    assert (bad.ended, good.ended, clerk.seqs("other")) == ("failed", "done", [0])
    assert isinstance(bad.error, StoreUnavailable)
    assert ends(wake(consumer)) == ["done"]


def test_catch_up_raises_what_kept_it_from_going_on(office: Office) -> None:
    consumer = office.hire(Clerk())
    office.put(0)
    store = office.interrupt(consumer)
    store.before["commit"] = fail_twice(store)
    with pytest.raises(StoreUnavailable):
        consumer.catch_up("q")
