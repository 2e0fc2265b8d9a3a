"""The guarantees of control stores as tests, one a number. Subclass both classes, give them a `bench`, run pytest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from stream_sort.errors import EffectRefused, StreamSortError, TransactionTooLarge
from stream_sort.model.batch import Transaction
from stream_sort.model.consumption import Checkpoint, Commit, Consumers, DeadLetter, Parked, Subscription
from stream_sort.model.records import Cursor, Tombstones
from stream_sort.stores.effects import MAX_EFFECTS
from stream_sort.testing.contract_examples import NOW, arrival

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.ports import ControlStores, Home

ROW = Checkpoint("billing", "q", 4, run="run 1", committed_at=NOW)
PARKED = Parked("q", 5, "ValueError: no", 2, NOW, NOW + 8)
LETTER = DeadLetter("q", 5, "ValueError: no", 5, NOW)


@dataclass(frozen=True, slots=True)
class ControlBench:
    """A new control store, the tables it stands beside, and a table of the user's with the text key `id`.

    `written` tells what stands in that table, by id.
    """

    control: ControlStores
    home: Home
    table: str
    written: Callable[[], dict[str, dict[str, Any]]]

    def puts(self, *names: str, **expressions: Any) -> Transaction:
        """Return a transaction that puts an item of each name."""
        transaction = Transaction()
        for name in names:
            transaction.put(self.table, {"id": name}, **expressions)
        return transaction

    def row(self, queue: str = "q") -> Checkpoint | None:
        """Return the checkpoint as it stands."""
        return self.control.checkpoints.standing("billing", queue).checkpoint


class ControlStoreContract:
    """The guarantees of Checkpoints, DeadLetters and Subscriptions."""

    def test_1_a_standing_shows_checkpoint_cursor_and_slot_as_they_stand(self, bench: ControlBench) -> None:
        nothing = bench.control.checkpoints.standing("billing", "q", 3)
        assert (nothing.checkpoint, nothing.cursor, nothing.taken) == (None, None, False)
        bench.control.checkpoints.create(ROW)
        cursor = bench.home.cursors.create(Cursor("q", 5, 0)).cursor
        bench.home.items.put(arrival("q", 3, body="x" * 5_000), NOW)
        bench.home.items.skip(Tombstones("q", (4,), "lost", None), NOW)
        for slot, taken in ((3, True), (4, True), (5, False), (None, None)):
            standing = bench.control.checkpoints.standing("billing", "q", slot)
            assert (standing.checkpoint, standing.cursor, standing.taken) == (ROW, cursor, taken)
        assert bench.control.checkpoints.standing("other", "q").checkpoint is None

    def test_1_a_checkpoint_reads_as_it_was_written(self, bench: ControlBench) -> None:
        never = replace(PARKED, next_try=None, damaged=True, seq=2**63 - 1, error="naïve 🦄 " + "x" * 900)
        for number, parked in enumerate((None, PARKED, never)):
            queue = ["#", "q#dead", "ü" * 512][number]
            mine = replace(parked, queue=queue) if parked else None
            replayed = None if number == 0 else 2**63 - number
            began = None if number == 0 else -number
            had = {"replayed_through": replayed, "replayed_after": began, "began": began}
            row = Checkpoint("b.i-l_l", queue, 2**63 - 1 - number, 7, "run", NOW, mine, **had)
            assert bench.control.checkpoints.create(row).won
            assert bench.control.checkpoints.standing("b.i-l_l", queue).checkpoint == row

    def test_2_a_checkpoint_is_created_once(self, bench: ControlBench) -> None:
        assert bench.control.checkpoints.create(ROW) == Commit(won=True, checkpoint=ROW)
        assert bench.control.checkpoints.create(replace(ROW, seq=9, run="run 2")) == Commit(won=False, checkpoint=ROW)
        assert bench.row() == ROW

    def test_2_a_first_checkpoint_is_created_only_while_its_consumer_is_starting(self, bench: ControlBench) -> None:
        control = bench.control
        starting = control.subscriptions.register(Subscription("fresh", "latest", NOW, ready=False))
        first, second = Checkpoint("fresh", "a", 4), Checkpoint("fresh", "b", 4)
        assert control.checkpoints.create(first, starting).won
        assert not control.checkpoints.create(first, starting).won
        control.subscriptions.make_ready(starting)
        assert not control.checkpoints.create(second, starting).won
        assert sorted(control.checkpoints.of_queues("fresh", ["a", "b"]).whole()) == ["a"]

    def test_3_a_commit_needs_the_version_that_was_read(self, bench: ControlBench) -> None:
        bench.control.checkpoints.create(ROW)
        new = replace(ROW, seq=5, version=1, parked=PARKED)
        assert bench.control.checkpoints.commit(ROW, new) == Commit(won=True, checkpoint=new)
        assert bench.control.checkpoints.commit(ROW, replace(ROW, seq=9, version=1)) == Commit(
            won=False, checkpoint=new
        )
        assert bench.row() == new
        freed = replace(new, version=2, parked=None)
        assert bench.control.checkpoints.commit(new, freed).won
        assert bench.row() == freed

    def test_3_a_commit_never_makes_a_row(self, bench: ControlBench) -> None:
        new = replace(ROW, version=1)
        assert bench.control.checkpoints.commit(ROW, new) == Commit(won=False, checkpoint=None)
        lost = bench.control.checkpoints.commit(ROW, new, bench.puts("a").effects, LETTER)
        assert lost == Commit(won=False, checkpoint=None)
        assert (bench.row(), bench.written()) == (None, {})

    def test_4_effects_and_dead_letter_are_written_with_the_checkpoint(self, bench: ControlBench) -> None:
        bench.control.checkpoints.create(ROW)
        new = replace(ROW, seq=5, version=1)
        assert bench.control.checkpoints.commit(ROW, new, bench.puts("a", "b").effects, LETTER).won
        assert bench.row() == new
        assert bench.written().keys() == {"a", "b"}
        assert bench.control.dead_letters.of_queue("billing", "q") == [LETTER]

    def test_4_effects_and_dead_letter_of_a_lost_commit_are_not_written(self, bench: ControlBench) -> None:
        bench.control.checkpoints.create(replace(ROW, version=3))
        lost = bench.control.checkpoints.commit(ROW, replace(ROW, version=1), bench.puts("a").effects, LETTER)
        assert lost == Commit(won=False, checkpoint=replace(ROW, version=3))
        assert (bench.written(), bench.control.dead_letters.of_queue("billing", "q")) == ({}, [])

    def test_4_as_many_effects_as_are_allowed_fit_with_a_dead_letter(self, bench: ControlBench) -> None:
        bench.control.checkpoints.create(ROW)
        names = [f"effect {number}" for number in range(MAX_EFFECTS)]
        assert bench.control.checkpoints.commit(ROW, replace(ROW, version=1), bench.puts(*names).effects, LETTER).won
        assert len(bench.written()) == MAX_EFFECTS

    def test_5_a_lost_commit_is_an_answer_even_if_an_effect_is_refused_too(self, bench: ControlBench) -> None:
        bench.control.checkpoints.create(replace(ROW, version=3))
        puts = bench.puts("a", ConditionExpression="attribute_exists(id)")
        assert not bench.control.checkpoints.commit(ROW, replace(ROW, version=1), puts.effects).won

    def test_5_effects_that_do_not_fit_into_one_transaction_are_named(self, bench: ControlBench) -> None:
        bench.control.checkpoints.create(ROW)
        twice = Transaction()
        twice.update(bench.table, {"id": "a"}, "SET seen = :yes", ExpressionAttributeValues={":yes": True})
        twice.delete(bench.table, {"id": "a"})
        too_many = bench.puts(*(str(number) for number in range(MAX_EFFECTS + 1)))
        for transaction in (twice, too_many):
            error = _raised(
                partial(bench.control.checkpoints.commit, ROW, replace(ROW, version=1), transaction.effects)
            )
            assert isinstance(error, TransactionTooLarge)
        assert (bench.row(), bench.written()) == (ROW, {})

    def test_6_checkpoints_of_many_queues_are_those_that_exist(self, bench: ControlBench) -> None:
        queues = [f"queue {number}" for number in range(130)]
        made = {queue: replace(ROW, queue=queue) for queue in queues[::2]}
        for row in made.values():
            bench.control.checkpoints.create(row)
        bench.control.checkpoints.create(replace(ROW, consumer="other", queue="queue 1"))
        assert bench.control.checkpoints.of_queues("billing", queues).whole() == made
        assert bench.control.checkpoints.of_queues("billing", []).whole() == {}

    def test_18_what_can_be_read_of_many_queues_is_what_checkpoints_reads(self, bench: ControlBench) -> None:
        queues = [f"queue {number}" for number in range(130)]
        for queue in queues[::2]:
            bench.control.checkpoints.create(replace(ROW, queue=queue))
        read = bench.control.checkpoints.of_queues("billing", queues)
        assert (read.rows, read.damaged) == (bench.control.checkpoints.of_queues("billing", queues).whole(), {})
        assert bench.control.checkpoints.of_queues("billing", []).rows == {}

    def test_7_parked_queues_are_listed_next_try_first(self, bench: ControlBench) -> None:
        for queue, next_try in (("never", None), ("late", NOW + 9), ("soon", NOW + 1), ("mid", NOW + 5)):
            parked = replace(PARKED, queue=queue, next_try=next_try)
            bench.control.checkpoints.create(replace(ROW, queue=queue, parked=parked))
        bench.control.checkpoints.create(replace(ROW, queue="free"))
        bench.control.checkpoints.create(replace(ROW, consumer="other", queue="soon", parked=PARKED))
        assert _parked(bench.control) == ["soon", "mid", "late", "never"]
        assert _parked(bench.control, NOW + 5) == ["soon", "mid"]
        soon = bench.row("soon")
        assert soon is not None
        bench.control.checkpoints.commit(soon, replace(soon, version=1, parked=None))
        assert _parked(bench.control) == ["mid", "late", "never"]

    def test_8_dead_letters_are_listed_oldest_first(self, bench: ControlBench) -> None:
        first = replace(LETTER, queue="a", seq=9)
        second = replace(LETTER, queue="b", since=NOW + 2)
        for letter in (second, first, replace(LETTER, queue="c", since=NOW + 1, discarded="gone")):
            _bury(bench.control, letter)
        page = bench.control.dead_letters.listed("billing")
        assert (page.dead, page.next) == ((first, second), None)
        assert bench.control.dead_letters.listed("other").dead == ()

    def test_9_dead_letters_of_a_queue_come_in_the_order_of_their_seqs(self, bench: ControlBench) -> None:
        letters = [replace(LETTER, seq=seq, since=NOW - seq % 7) for seq in (-(2**62), -5, 3, 10, 2**63 - 1)]
        for letter in reversed(letters):
            _bury(bench.control, letter)
        gone = replace(LETTER, seq=4, discarded="gone")
        _bury(bench.control, gone)
        _bury(bench.control, replace(LETTER, queue="q#dead", seq=1))
        assert bench.control.dead_letters.of_queue("billing", "q") == letters
        assert bench.control.dead_letters.of_queue("billing", "q", discarded=True) == [gone]

    def test_10_a_dead_letter_is_settled_only_as_it_was_read(self, bench: ControlBench) -> None:
        assert not bench.control.dead_letters.settle("billing", LETTER, None)
        _bury(bench.control, LETTER)
        again = replace(LETTER, attempts=6, error="KeyError: still")
        assert bench.control.dead_letters.settle("billing", LETTER, again)
        assert not bench.control.dead_letters.settle("billing", LETTER, None)
        assert bench.control.dead_letters.of_queue("billing", "q") == [again]
        assert bench.control.dead_letters.settle("billing", again, replace(again, discarded="not needed"))
        assert not bench.control.dead_letters.settle("billing", again, None)
        _bury(bench.control, replace(LETTER, seq=6))
        assert bench.control.dead_letters.settle("billing", replace(LETTER, seq=6), None)
        assert bench.control.dead_letters.of_queue("billing", "q") == []

    def test_10_a_dead_letter_that_one_redrive_tries_is_settled_by_no_other_one(self, bench: ControlBench) -> None:
        _bury(bench.control, LETTER)
        noted, other = replace(LETTER, attempts=6, run="a"), replace(LETTER, attempts=6, run="b")
        assert bench.control.dead_letters.settle("billing", LETTER, noted)
        assert not bench.control.dead_letters.settle("billing", other, LETTER)
        assert not bench.control.dead_letters.settle("billing", replace(noted, run=None), None)
        assert bench.control.dead_letters.of_queue("billing", "q") == [noted]
        assert bench.control.dead_letters.settle("billing", noted, LETTER)
        assert not bench.control.dead_letters.settle("billing", replace(LETTER, run="a"), None)
        assert bench.control.dead_letters.of_queue("billing", "q") == [LETTER]

    def test_11_effects_are_written_with_the_dead_letters_end_or_not_at_all(self, bench: ControlBench) -> None:
        _bury(bench.control, LETTER)
        assert not bench.control.dead_letters.settle(
            "billing", replace(LETTER, attempts=1), None, bench.puts("b").effects
        )
        assert (bench.written(), bench.control.dead_letters.of_queue("billing", "q")) == ({}, [LETTER])
        assert bench.control.dead_letters.settle("billing", LETTER, None, bench.puts("c").effects)
        assert (set(bench.written()), bench.control.dead_letters.of_queue("billing", "q")) == ({"c"}, [])

    def test_12_a_consumer_is_registered_once(self, bench: ControlBench) -> None:
        first = Subscription("billing", "latest", NOW, ready=False)
        assert bench.control.subscriptions.register(first) == first
        assert bench.control.subscriptions.register(Subscription("billing", "17", NOW + 5)) == first

    def test_12_a_retired_consumer_comes_back_as_it_was(self, bench: ControlBench) -> None:
        first = bench.control.subscriptions.register(Subscription("billing", "latest", NOW, ready=False))
        for ready in (False, True):
            bench.control.subscriptions.retire("billing", NOW + 1)
            assert bench.control.subscriptions.register(Subscription("billing", "17", NOW + 5)) == replace(
                first, ready=ready
            )
            assert bench.control.subscriptions.consumers() == [replace(first, ready=ready)]
            bench.control.subscriptions.make_ready(first)

    def test_13_getting_ready_changes_nothing_else(self, bench: ControlBench) -> None:
        first = bench.control.subscriptions.register(Subscription("billing", "latest", NOW, ready=False))
        bench.control.subscriptions.make_ready(replace(first, start="17", since=0.0))
        assert bench.control.subscriptions.consumers() == [replace(first, ready=True)]

    def test_13_getting_ready_makes_no_consumer_known_that_was_retired(self, bench: ControlBench) -> None:
        first = bench.control.subscriptions.register(Subscription("billing", "latest", NOW, ready=False))
        bench.control.subscriptions.retire("billing", NOW + 1)
        assert bench.control.checkpoints.create(replace(ROW, queue="a"), first).won
        bench.control.subscriptions.make_ready(first)
        assert bench.control.subscriptions.consumers() == []
        assert not bench.control.checkpoints.create(replace(ROW, queue="b"), first).won
        assert bench.control.subscriptions.register(first) == replace(first, ready=True)

    def test_13_who_never_was_registered_does_not_get_ready(self, bench: ControlBench) -> None:
        bench.control.subscriptions.make_ready(Subscription("biling", "latest", NOW, ready=False))
        assert (bench.control.subscriptions.consumers(), bench.control.subscriptions.consumers(retired=True)) == (
            [],
            [],
        )

    def test_16_a_retired_consumer_is_named_no_more_and_its_rows_stay(self, bench: ControlBench) -> None:
        other = bench.control.subscriptions.register(Subscription("search", "earliest", NOW))
        bench.control.subscriptions.register(Subscription("billing", "latest", NOW))
        bench.control.checkpoints.create(ROW)
        _bury(bench.control, LETTER)
        row = bench.row()
        for later in (1, 2):
            bench.control.subscriptions.retire("billing", NOW + later)
        assert bench.control.subscriptions.consumers() == [other]
        retired = Subscription("billing", "latest", NOW, retired_at=NOW + 1)
        assert bench.control.subscriptions.consumers(retired=True) == [retired]
        assert (bench.row(), bench.control.dead_letters.of_queue("billing", "q")) == (row, [LETTER])
        assert bench.control.subscriptions.register(Subscription("billing", "17", NOW + 5)) == replace(
            retired, retired_at=None
        )
        assert sorted(one.name for one in bench.control.subscriptions.consumers()) == ["billing", "search"]
        assert bench.control.subscriptions.consumers(retired=True) == []

    def test_16_who_never_was_registered_is_not_retired(self, bench: ControlBench) -> None:
        bench.control.subscriptions.retire("biling", NOW)
        assert (bench.control.subscriptions.consumers(), bench.control.subscriptions.consumers(retired=True)) == (
            [],
            [],
        )

    def test_17_a_consumer_is_introduced_once_and_not_after_it_was_retired(self, bench: ControlBench) -> None:
        first = Subscription("billing", "latest", NOW, ready=False)
        later = Subscription("billing", "earliest", NOW + 5)
        assert bench.control.subscriptions.introduce(first) == first
        assert bench.control.subscriptions.introduce(later) == first
        bench.control.subscriptions.retire("billing", NOW + 6)
        assert bench.control.subscriptions.introduce(later) == replace(first, retired_at=NOW + 6)
        assert bench.control.subscriptions.consumers() == []
        assert bench.control.subscriptions.register(later) == first
        assert bench.control.subscriptions.introduce(later) == first

    def test_14_every_consumer_is_named(self, bench: ControlBench) -> None:
        assert bench.control.subscriptions.consumers() == []
        made = [Subscription(f"c{number}", "earliest", NOW) for number in range(30)]
        for subscription in made:
            bench.control.subscriptions.register(subscription)
        assert sorted(bench.control.subscriptions.consumers(), key=lambda one: int(one.name[1:])) == made

    def test_19_consumers_that_can_be_read_are_those_that_are_there(self, bench: ControlBench) -> None:
        assert bench.control.subscriptions.readable_consumers() == Consumers({})
        made = {
            name: bench.control.subscriptions.register(Subscription(name, "earliest", NOW))
            for name in ("billing", "search")
        }
        bench.control.subscriptions.retire("search", NOW + 1)
        found = bench.control.subscriptions.readable_consumers()
        gone = replace(made["search"], retired_at=NOW + 1)
        assert (found.rows, found.damaged) == ({"billing": made["billing"], "search": gone}, {})
        assert (found.named("billing"), found.named("search")) == (made["billing"], None)

    def test_15_the_bookmark_is_what_was_set_last(self, bench: ControlBench) -> None:
        assert bench.control.subscriptions.bookmark() is None
        for place in ({"queue": {"S": "naïve"}}, {"queue": {"S": "b"}}, None):
            bench.control.subscriptions.set_bookmark(place)
            assert bench.control.subscriptions.bookmark() == place


class ControlConditionContract:
    """Their guarantees for conditions among effects."""

    def test_5_a_condition_that_does_not_hold_refuses_everything(self, bench: ControlBench) -> None:
        bench.control.checkpoints.create(ROW)
        puts = bench.puts("a")
        puts.condition(bench.table, {"id": "nobody"}, "attribute_exists(id)")
        error = _raised(lambda: bench.control.checkpoints.commit(ROW, replace(ROW, version=1), puts.effects, LETTER))
        assert isinstance(error, EffectRefused)
        assert "ConditionCheck" in str(error)
        assert bench.table in str(error)
        assert (bench.row(), bench.written(), bench.control.dead_letters.of_queue("billing", "q")) == (ROW, {}, [])

    def test_11_a_refused_effect_leaves_the_dead_letter_as_it_was(self, bench: ControlBench) -> None:
        _bury(bench.control, LETTER)
        puts = bench.puts("a", ConditionExpression="attribute_exists(id)")
        error = _raised(lambda: bench.control.dead_letters.settle("billing", LETTER, None, puts.effects))
        assert isinstance(error, EffectRefused)
        assert (bench.written(), bench.control.dead_letters.of_queue("billing", "q")) == ({}, [LETTER])


def _raised(call: Callable[[], object]) -> StreamSortError | None:
    try:
        call()
    except StreamSortError as error:
        return error
    return None


def _bury(control: ControlStores, letter: DeadLetter) -> None:
    old = Checkpoint("billing", letter.queue, letter.seq - 1)
    there = control.checkpoints.create(old).checkpoint or old
    assert control.checkpoints.commit(there, replace(there, version=there.version + 1), dead=letter).won


def _parked(control: ControlStores, before: float | None = None) -> list[str]:
    page = control.checkpoints.parked("billing", before)
    listed = [parked.queue for parked in page.parked]
    while page.next is not None:
        page = control.checkpoints.parked("billing", before, page.next)
        listed += [parked.queue for parked in page.parked]
    return listed
