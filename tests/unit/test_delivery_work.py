from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stream_sort.errors import HandlerProblem, PartlyDone, SequenceConflict, SettingsError, TableNotFound
from stream_sort.replay.backfill.ledger import Ledger, PartRecord
from stream_sort.replay.backfill.tally import RangeTally
from stream_sort.replay.backfill.targets.delivery import ATTEMPTS, NOT_AT_SOURCE, DeliveryWork
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.ranges import Part, Range, Selection
from tests.replayed import Inbox, slots

if TYPE_CHECKING:
    from pathlib import Path

    from stream_sort.model.batch import Batch

PART = Part(0, (Range("a", -1, 9), Range("b", 4, 8)))


class Killed(BaseException):
    """Stands for the end of the process: nothing catches it."""


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(Storage(str(tmp_path / "ledger")))


def work(inbox: Inbox, ledger: Ledger, on_gap: str = "fail", batch_size: int = 3) -> DeliveryWork:
    return DeliveryWork(inbox, ledger, Selection(), on_gap, batch_size, "plan", sleep=lambda _: None)


def deliver(inbox: Inbox, ledger: Ledger, on_gap: str = "fail") -> PartRecord:
    batches = [slots("a", range(10), skipped={4: "given up", 5: "given up"}), slots("b", range(5, 9))]
    return work(inbox, ledger, on_gap)(PART, iter(batches))


A = [("a", seq) for seq in range(10) if seq not in {4, 5}]
B = [("b", seq) for seq in range(5, 9)]


def test_queues_are_delivered_in_order_and_skipped_seqs_are_skipped_there_too(ledger: Ledger) -> None:
    inbox = Inbox()
    record = deliver(inbox, ledger)
    assert inbox.got == A + B
    assert inbox.opened == [("a", 0), ("b", 5)]
    assert inbox.skipped == [("a", 4, "given up"), ("a", 5, "given up")]
    assert record.ended
    assert [(one.rows, one.tombstones, one.done, one.is_whole) for one in record.tallies] == [
        (8, 2, 9, True),
        (4, 0, 8, True),
    ]
    assert ledger.record(0) == record


@pytest.mark.parametrize("after", range(12))
def test_whoever_is_killed_resumes_after_the_last_commit(ledger: Ledger, after: int) -> None:
    class Fragile(Inbox):
        def __call__(self, batch: Batch) -> int | None:
            for message in batch:
                if len(self.got) == after:
                    raise Killed
                self.got.append((batch.queue, message["seq"]))
            return None

    fragile, inbox = Fragile(), Inbox()
    with pytest.raises(Killed):
        deliver(fragile, ledger)
    record = deliver(inbox, ledger)
    assert inbox.got == (A + B)[-len(inbox.got) :]
    overlap = len(fragile.got) + len(inbox.got) - len(A + B)
    assert 0 <= overlap < 3 * 2
    assert sum(one.rows for one in record.tallies) == len(A + B)
    assert all(one.is_whole for one in record.tallies)


def test_a_sink_that_took_a_part_gets_the_rest_and_no_more(ledger: Ledger) -> None:
    class Choosy(Inbox):
        def __call__(self, batch: Batch) -> int | None:
            self.got.append((batch.queue, batch.seqs[0]))
            if len(batch) > 1:
                if batch.queue == "b":
                    return batch.seqs[0]
                raise PartlyDone(batch.seqs[0]) from HandlerProblem("one at a time")
            return None

    inbox = Choosy()
    assert deliver(inbox, ledger).ended
    assert inbox.got == A + B


def test_a_queue_that_cannot_be_delivered_stops_alone_and_is_tried_again_next_time(ledger: Ledger) -> None:
    class Refusing(Inbox):
        calls = 0

        def __call__(self, batch: Batch) -> int | None:
            if batch.queue == "a" and batch.through > 3:
                self.calls += 1
                raise HandlerProblem("no more of this")
            return super().__call__(batch)

    refusing, inbox = Refusing(), Inbox()
    record = deliver(refusing, ledger)
    assert refusing.calls == ATTEMPTS
    assert refusing.got == [("a", 0), ("a", 1), ("a", 2), *B]
    assert [one.failed for one in record.tallies] == ["no more of this", ""]
    assert not record.ended
    assert deliver(inbox, ledger).ended
    assert inbox.got == [place for place in A if place[1] > 2]


def test_a_conflict_is_not_tried_again(ledger: Ledger) -> None:
    class Taken(Inbox):
        def __call__(self, batch: Batch) -> int | None:
            super().__call__(batch)
            raise SequenceConflict(batch.queue, batch.seqs[0])

    taken = Taken()
    record = deliver(taken, ledger)
    assert taken.got == [("a", 0), ("a", 1), ("a", 2), ("b", 5), ("b", 6), ("b", 7)]
    assert "a different message is already stored" in record.tallies[0].failed


def test_a_mistake_is_not_tried_again_and_a_missing_target_stops_everything(ledger: Ledger) -> None:
    class Wrong(Inbox):
        error: Exception = SettingsError("began elsewhere")

        def open(self, queue: str, first_seq: int) -> None:
            super().open(queue, first_seq)
            raise self.error

    wrong = Wrong()
    assert [one.failed for one in deliver(wrong, ledger).tallies] == ["began elsewhere"] * 2
    assert len(wrong.opened) == 2
    wrong.error = TableNotFound("no such table")
    with pytest.raises(TableNotFound):
        deliver(wrong, ledger)


def test_a_hole_stops_the_part_and_names_what_is_missing(ledger: Ledger) -> None:
    inbox = Inbox()
    record = work(inbox, ledger)(PART, iter([slots("a", [0, 1, 2, 5, 6]), slots("b", range(5, 9))]))
    assert inbox.got == [("a", 0), ("a", 1), ("a", 2)]
    assert record.tallies[0].missing == (Range("a", 2, 4),)
    assert not record.ended
    again = Inbox()
    assert deliver(again, ledger).ended
    assert again.got == [place for place in A if place[1] > 2] + B


@pytest.mark.parametrize(("on_gap", "skipped"), [("report", []), ("skip", [3, 4, 8, 9])])
def test_holes_that_are_allowed_are_counted_and_skipped_at_the_target_when_told_so(
    ledger: Ledger, on_gap: str, skipped: list[int]
) -> None:
    inbox = Inbox()
    batches = [slots("a", [0, 1, 2, 5, 6, 7]), slots("b", range(5, 9))]
    record = work(inbox, ledger, on_gap)(PART, iter(batches))
    assert inbox.got == [("a", seq) for seq in (0, 1, 2, 5, 6, 7)] + B
    assert record.tallies[0].missing == (Range("a", 2, 4), Range("a", 7, 9))
    assert inbox.skipped == [("a", seq, NOT_AT_SOURCE) for seq in skipped]
    assert record.ended


def test_whoever_resumes_goes_on_with_the_same_sending_and_a_queue_begun_anew_is_another(ledger: Ledger) -> None:
    class Refusing(Inbox):
        def __call__(self, batch: Batch) -> int | None:
            raise SequenceConflict(batch.queue, batch.seqs[0])

    refusing, inbox, anew = Refusing(), Inbox(), Inbox()
    deliver(refusing, ledger)
    record = deliver(inbox, ledger)
    assert {*refusing.sendings} == {*inbox.sendings} == {"plan-0"}
    begun_anew = replace(RangeTally.of(PART.ranges[0]), again=1)
    ledger.commit(replace(record, tallies=(begun_anew, record.tallies[1]), ended=False))
    batches = [slots("a", range(10), skipped={4: "given up", 5: "given up"})]
    assert work(anew, ledger)(Part(0, PART.ranges[:1]), iter(batches)).ended
    assert {*anew.sendings} == {"plan-1"}
    assert {*deliver_elsewhere(ledger)} == {"other-0"}


def deliver_elsewhere(ledger: Ledger) -> list[str]:
    """What a part of another plan is sent as."""
    inbox = Inbox()
    other = replace(work(inbox, ledger), plan="other")
    assert other(Part(1, (Range("a", -1, 1),)), iter([slots("a", range(2))])).ended
    return inbox.sendings


def test_many_small_queues_are_committed_together(ledger: Ledger) -> None:
    commits = []

    class Counting(Ledger):
        def commit(self, record: PartRecord) -> None:
            commits.append(record)
            super().commit(record)

    part = Part(0, tuple(Range(f"q{number:02}", -1, 0) for number in range(50)))
    batches = [slots(one.queue, [0]) for one in part.ranges]
    assert work(Inbox(), Counting(ledger.storage), batch_size=10)(part, iter(batches)).ended
    assert len(commits) == 6
