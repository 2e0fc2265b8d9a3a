"""A sorter against the simplest thing that could be right, under any sequence of calls."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from stream_sort import NotReleased, NotWithdrawn, QueueNotFound, StreamSorter, Sweeper, Trimmed
from stream_sort.testing.clock import MovableClock
from tests.unit.queues import beside

QUEUES = st.sampled_from(["a", "b"])
SEQS = st.integers(0, 25)
BODIES = st.sampled_from([1, 1.0])


class SorterMachine(RuleBasedStateMachine):
    """The model: for each queue the first document of each slot, or None for a tombstone."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = MovableClock()
        self.sorter = StreamSorter.in_memory(clock=self.clock, max_advance=3, window=4, gap_policy="skip after 60 s")
        self.slots: dict[str, dict[int, dict[str, Any] | None]] = {"a": {}, "b": {}}
        self.late: dict[tuple[str, int], dict[str, Any]] = {}
        self.released = {"a": -1, "b": -1}
        self.floors = {"a": -1, "b": -1}
        self.withdrawn: dict[str, list[dict[str, Any]]] = {"a": [], "b": []}
        self.known: set[str] = set()

    def end(self, queue: str) -> int:
        end = -1
        while end + 1 in self.slots[queue]:
            end += 1
        return end

    def begun(self) -> list[tuple[str, dict[int, dict[str, Any] | None]]]:
        self.known.update(queue for queue, slots in self.slots.items() if slots)
        return [(queue, slots) for queue, slots in self.slots.items() if queue in self.known]

    def expect(self, document: dict[str, Any]) -> str:
        queue, seq = document["queue"], document["seq"]
        slots = self.slots[queue]
        if seq <= self.floors[queue]:
            return "trimmed"
        if seq not in slots:
            slots[seq] = document
            return "accepted"
        if slots[seq] is None:
            kept = self.late.setdefault((queue, seq), document)
            return "late" if repr(kept) == repr(document) else "conflict"
        return "duplicate" if repr(slots[seq]) == repr(document) else "conflict"

    @rule(queue=QUEUES, seq=SEQS, body=BODIES)
    def put(self, queue: str, seq: int, body: float) -> None:
        document = {"queue": queue, "seq": seq, "body": body}
        expected = self.expect(document)
        if expected == "trimmed":
            with pytest.raises(Trimmed):
                self.sorter.put(document)
            return
        advance = self.sorter.put(document)
        assert advance.status == expected
        assert len(advance) == self.end(queue) - self.released[queue]

    @rule(batch=st.lists(st.tuples(QUEUES, SEQS, BODIES), max_size=12))
    def put_many(self, batch: list[tuple[str, int, float]]) -> None:
        documents = [{"queue": queue, "seq": seq, "body": body} for queue, seq, body in batch]
        expected = [self.expect(document) for document in documents]
        result = self.sorter.put_many(documents)
        assert result.accepted == expected.count("accepted")
        told = ["trimmed" if isinstance(outcome, Trimmed) else outcome for outcome in result.outcomes]
        assert told == expected
        assert all(isinstance(error, Trimmed) for _, error in result.rejected)
        for status, found in (
            ("duplicate", result.duplicates),
            ("conflict", result.conflicts),
            ("late", result.late),
            ("trimmed", [document for document, _ in result.rejected]),
        ):
            assert found == [document for document, was in zip(documents, expected, strict=True) if was == status]

    @rule(queue=QUEUES, seqs=st.lists(SEQS, max_size=5))
    def skip(self, queue: str, seqs: list[int]) -> None:
        missing = [seq for seq in dict.fromkeys(seqs) if seq not in self.slots[queue]]
        assert list(self.sorter.skip(queue, seqs).skipped) == missing
        self.slots[queue] |= dict.fromkeys(missing)

    @rule(queue=QUEUES, seq=SEQS, by_another=st.booleans())
    def withdraw(self, queue: str, seq: int, *, by_another: bool) -> None:
        slots, sorter = self.slots[queue], beside(self.sorter) if by_another else self.sorter
        can_be = seq - 1 > self.end(queue) and seq - 1 not in slots
        if can_be and slots.get(seq) is not None:
            document = slots.pop(seq)
            assert repr(sorter.withdraw(queue, seq).message) == repr(document)
            self.withdrawn[queue].append(document)
        elif seq > self.end(queue) and seq not in slots and seq in [one["seq"] for one in self.withdrawn[queue]]:
            assert sorter.withdraw(queue, seq) in sorter.withdrawn(queue)
        else:
            with pytest.raises((NotWithdrawn, QueueNotFound)):
                sorter.withdraw(queue, seq)

    @rule(seconds=st.sampled_from([1, 30, 61]))
    def sweep(self, seconds: int) -> None:
        self.clock.move(seconds)
        for gap in Sweeper(self.sorter).sweep().skipped:
            assert gap.seqs.start == self.end(gap.queue) + 1, "the lowest first, each up to what waits behind it"
            self.slots[gap.queue] |= dict.fromkeys(gap.seqs)

    @rule(queue=QUEUES, seq=SEQS)
    def trim(self, queue: str, seq: int) -> None:
        other = beside(self.sorter)
        if seq > self.end(queue):
            with pytest.raises((NotReleased, QueueNotFound)):
                other.trim(queue, seq, control_table=None)
            return
        other.trim(queue, seq, control_table=None)
        self.floors[queue] = max(self.floors[queue], seq)

    @rule()
    def forget(self) -> None:
        for queue in self.slots:
            self.sorter._intake.hints.forget(queue)

    @invariant()
    def i1_i2_the_position_is_the_end_of_the_run(self) -> None:
        for queue in self.slots:
            self.released[queue] = self.end(queue)
            assert self.sorter.position(queue) == self.end(queue)

    @invariant()
    def i5_i6_what_was_stored_first_is_read_in_order(self) -> None:
        for queue, slots in self.begun():
            there = range(self.floors[queue] + 1, self.end(queue) + 1)
            expected = [slots[seq] for seq in there if slots[seq] is not None]
            assert repr(list(self.sorter.read(queue))) == repr(expected)

    @invariant()
    def what_never_was_is_no_empty_queue(self) -> None:
        for queue in self.slots.keys() - dict(self.begun()):
            for question in (self.sorter.read, self.sorter.gaps, self.sorter.explain):
                with pytest.raises(QueueNotFound):
                    question(queue)

    @invariant()
    def i5_what_was_withdrawn_is_kept(self) -> None:
        for queue, _ in self.begun():
            kept = sorted(self.sorter.withdrawn(queue), key=lambda one: one.number)
            assert repr([one.message for one in kept]) == repr(self.withdrawn[queue])

    @invariant()
    def gaps_are_what_is_missing(self) -> None:
        for queue, slots in self.begun():
            missing = {seq for gap in self.sorter.gaps(queue) for seq in gap}
            assert missing == {seq for seq in range(self.end(queue) + 1, max(slots, default=-1)) if seq not in slots}


TestSorterMachine = SorterMachine.TestCase
TestSorterMachine.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
