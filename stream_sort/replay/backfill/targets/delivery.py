"""A part's queues to a sender, each in order; progress is committed as it goes.

At least once: what was delivered after the last commit is delivered again by whoever resumes, from the commit on.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from stream_sort.consume.handler import call_handler
from stream_sort.errors import (
    HandlerProblem,
    MissingItems,
    OtherKeys,
    ReplayFailed,
    StoreMisconfigured,
    StreamSortError,
)
from stream_sort.model.batch import Batch
from stream_sort.replay.backfill.ledger import PartRecord
from stream_sort.replay.backfill.tally import RangeTally
from stream_sort.replay.completeness import Completeness, by_range, pieces
from stream_sort.replay.ranges import Range
from stream_sort.replay.slots import document_of, in_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from stream_sort.replay.backfill.ledger import Ledger
    from stream_sort.replay.backfill.targets.senders import Sender
    from stream_sort.replay.ranges import Part, Selection

ATTEMPTS = 5
FIRST_PAUSE = 0.2
# A target that takes nothing is not tried with every queue there is.
MOST_FAILED = 10
NOT_AT_SOURCE = "missing where it was replayed from"


@dataclass(frozen=True, slots=True)
class DeliveryWork:
    """Delivers a part; a queue that cannot be delivered stops alone, a hole stops the part unless holes are allowed.

    No two attempts may work on a part at once: tasks must not be speculated on. `plan` is the name of the job's plan:
    what is repeated under it may be dropped, unless its queue was begun anew.
    """

    sender: Sender
    ledger: Ledger
    selection: Selection
    on_gap: str
    batch_size: int
    plan: str = ""
    sleep: Callable[[float], None] = field(default=time.sleep)

    def __call__(self, part: Part, slots: Iterator[pa.RecordBatch]) -> PartRecord:
        """Deliver what is left of a part."""
        round_ = _Round(self, part.number, slots)
        for wanted, own in by_range(part, slots):
            if not round_.deliver(wanted, own):
                break
        return round_.end()


class _Round:
    """One attempt at a part."""

    def __init__(self, work: DeliveryWork, number: int, slots: Iterator[pa.RecordBatch]) -> None:
        self._work = work
        self._number = number
        self._slots = slots
        self._since_commit = 0
        work.ledger.check_lease()
        before = work.ledger.record(number)
        self._tallies = {} if before is None else {(one.queue, one.through): _afresh(one) for one in before.tallies}
        self._before = dict(self._tallies)

    def deliver(self, wanted: Range, own: Iterator[pa.RecordBatch]) -> bool:
        """Deliver a range; whether to go on with the next one."""
        place = wanted.queue, wanted.through
        tally = self._tallies.setdefault(place, RangeTally.of(wanted))
        self._before.setdefault(place, tally)
        try:
            if tally.done == tally.after:
                self._work.sender.open(wanted.queue, tally.after + 1)
            self._deliver(tally, own)
        except (StoreMisconfigured, OtherKeys, ReplayFailed):
            # Not this queue's alone: nothing can be delivered, or another run does it.
            raise
        except MissingItems as hole:
            missing = tuple(Range(hole.queue, gap.start - 1, gap.stop - 1) for gap in hole.missing)
            self._tallies[place] = replace(self._tallies[place], missing=missing, failed=str(hole))
            return False
        except StreamSortError as error:
            self._tallies[place] = replace(self._tallies[place], failed=_describe(error))
        return sum(bool(one.failed) for one in self._tallies.values()) < MOST_FAILED

    def end(self) -> PartRecord:
        """Commit what was done."""
        return self._commit(ended=all(one.is_done for one in self._tallies.values()))

    def _deliver(self, tally: RangeTally, own: Iterator[pa.RecordBatch]) -> None:
        work = self._work
        left = Range(tally.queue, tally.done, tally.through)
        watch = Completeness(left, may_have_holes=work.on_gap != "fail")
        for piece in pieces(_beyond(own, tally.done), work.batch_size):
            known = len(watch.holes)
            watch.take(piece)
            tally = self._deliver_piece(tally, piece, tuple(watch.holes[known:]))
        known = len(watch.holes)
        watch.finish()
        tail = tuple(watch.holes[known:])
        self._skip_missing(tally.queue, tail)
        self._note(replace(tally, done=tally.through, missing=tally.missing + tail))

    def _deliver_piece(self, tally: RangeTally, piece: pa.RecordBatch, holes: tuple[Range, ...]) -> RangeTally:
        last: int = piece.column("seq")[-1].as_py()
        inside = in_time(piece, self._work.selection)
        batch = _batch(tally.queue, tally.done, last, inside)
        self._hand_over(batch, f"{self._work.plan}-{tally.again}")
        self._skip_tombstones(tally.queue, inside)
        self._put_late(tally.queue, inside)
        self._skip_missing(tally.queue, holes)
        tally = replace(
            tally,
            done=last,
            rows=tally.rows + len(batch),
            tombstones=tally.tombstones + inside.num_rows - len(batch),
            outside=tally.outside + piece.num_rows - inside.num_rows,
            missing=tally.missing + holes,
        )
        self._note(tally)
        return tally

    def _hand_over(self, batch: Batch, sending: str) -> None:
        tries, handler = 0, self._work.sender.handler(sending)
        while batch.messages:
            verdict = call_handler(handler, batch)
            if verdict.done >= batch.through:
                return
            tries = tries + 1 if verdict.done <= batch.after else 1
            error = verdict.error
            if tries == ATTEMPTS or not _may_pass(error):
                raise error or HandlerProblem(f"the target stopped at seq {verdict.done} and says no more")
            if error is not None:
                self._work.sleep(FIRST_PAUSE * 2**tries)
            batch = _rest(batch, verdict.done)

    def _skip_tombstones(self, queue: str, slots: pa.RecordBatch) -> None:
        skipped = slots.filter(pc.is_valid(slots.column("skipped")))
        reasons = zip(skipped.column("skipped").to_pylist(), skipped.column("seq").to_pylist(), strict=True)
        for reason, group in groupby(reasons, lambda one: one[0]):
            self._work.sender.skip(queue, [seq for _, seq in group], reason)

    def _put_late(self, queue: str, slots: pa.RecordBatch) -> None:
        held = slots.filter(pc.is_valid(slots.column("late")))
        if held.num_rows:
            rows = zip(held.column("late").to_pylist(), held.column("binary").to_pylist(), strict=True)
            self._work.sender.late(queue, [document_of(text, binary) for text, binary in rows])

    def _skip_missing(self, queue: str, holes: tuple[Range, ...]) -> None:
        for hole in holes if self._work.on_gap == "skip" else ():
            self._work.sender.skip(queue, range(hole.after + 1, hole.through + 1), NOT_AT_SOURCE)

    def _note(self, tally: RangeTally) -> None:
        place = tally.queue, tally.through
        self._since_commit += tally.done - self._tallies[place].done
        self._tallies[place] = tally.with_conflicts(self._before[place], self._slots)
        if self._since_commit >= self._work.batch_size:
            self._commit(ended=False)

    def _commit(self, *, ended: bool) -> PartRecord:
        skips = self._work.on_gap == "skip"
        record = PartRecord(self._number, tuple(self._tallies.values()), ended, skips=skips)
        self._work.ledger.commit(record)
        self._since_commit = 0
        return record


def _afresh(tally: RangeTally) -> RangeTally:
    """Return the tally without what stopped it: it is tried again."""
    return replace(tally, failed="", missing=tuple(hole for hole in tally.missing if hole.through <= tally.done))


def _beyond(batches: Iterator[pa.RecordBatch], done: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.column("seq")[0].as_py() > done:
            yield batch
        elif (left := batch.filter(pc.greater(batch.column("seq"), done))).num_rows:
            yield left


def _batch(queue: str, after: int, through: int, slots: pa.RecordBatch) -> Batch:
    rows = zip(*(slots.column(name).to_pylist() for name in ("seq", "item", "binary")), strict=True)
    found = [(seq, document_of(text, binary)) for seq, text, binary in rows if text is not None]
    return Batch(queue, after, through, tuple(document for _, document in found), tuple(seq for seq, _ in found))


def _rest(batch: Batch, done: int) -> Batch:
    left = [(message, seq) for message, seq in zip(batch.messages, batch.seqs, strict=True) if seq > done]
    messages = tuple(message for message, _ in left)
    return Batch(batch.queue, done, batch.through, messages, tuple(seq for _, seq in left), batch.attempt + 1)


def _may_pass(error: Exception | None) -> bool:
    """Return True if it may pass: a sink's problem may be the network's; what no retry cures is ours and says so."""
    return not isinstance(error, StreamSortError) or isinstance(error, HandlerProblem) or error.retryable


def _describe(error: Exception) -> str:
    cause = error.__cause__
    return str(cause if isinstance(cause, HandlerProblem) else error)
