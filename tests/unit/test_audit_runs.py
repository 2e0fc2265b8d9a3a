"""Runs of seqs: however slots are scattered, cut and mixed, what is there and what is missing comes out the same."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_sort import StreamSorter
from stream_sort.model.message import MAX_SEQ, MIN_SEQ
from stream_sort.replay.audit import queues as audit_queues
from stream_sort.replay.audit.findings import findings_of
from stream_sort.replay.audit.queues import QueueAudit, RunCollector, joined_runs, queues_of
from stream_sort.replay.origins.export.lines import KEYS

Slot = tuple[str, int, bool, bool]
SLOTS = st.tuples(st.sampled_from(["a", "b", "é"]), st.integers(-5, 40), st.booleans(), st.booleans())
ENDS = st.sampled_from([MIN_SEQ, MIN_SEQ + 1, -1, 0, MAX_SEQ - 1, MAX_SEQ])


def batch(slots: list[Slot]) -> pa.RecordBatch:
    rows = [dict(zip(KEYS.names, (*slot, None), strict=True)) for slot in slots]
    return pa.RecordBatch.from_pylist(rows, schema=KEYS)


def expected(slots: list[Slot]) -> list[dict[str, Any]]:
    """Seq by seq: the simplest thing that could be right."""
    runs: list[dict[str, Any]] = []
    for queue, seq, tombstone, late in sorted(slots):
        last = runs[-1] if runs else None
        if last is None or last["queue"] != queue or seq > last["last"] + 1:
            last = {"queue": queue, "first": seq, "last": seq, "rows": 0, "tombstones": 0, "late": 0}
            runs.append(last)
        last["last"] = seq
        last["rows"] += 1
        last["tombstones"] += tombstone
        last["late"] += late
    return runs


@given(st.lists(st.lists(SLOTS, max_size=30), max_size=6), st.integers(1, 20))
@settings(max_examples=300, deadline=None)
def test_slots_in_any_order_and_any_batches_make_the_same_runs(batches: list[list[Slot]], held: int) -> None:
    collector = RunCollector()
    collector._limit = held
    for slots in batches:
        collector.take(batch(slots))
    assert collector.runs().to_pylist() == expected([slot for slots in batches for slot in slots])


@given(st.lists(st.lists(SLOTS, max_size=20), max_size=6))
@settings(max_examples=200, deadline=None)
def test_runs_of_several_tasks_are_stitched_overlaps_and_all(tasks: list[list[Slot]]) -> None:
    whole = RunCollector()
    for slots in tasks:
        own = RunCollector()
        own.take(batch(slots))
        whole.take_runs(own.runs())
    assert whole.runs().to_pylist() == expected([slot for slots in tasks for slot in slots])


@given(st.lists(ENDS, max_size=6))
def test_the_lowest_and_highest_seqs_there_are_do_not_overflow(seqs: list[int]) -> None:
    collector = RunCollector()
    collector.take(batch([("a", seq, False, False) for seq in seqs]))
    assert collector.runs().to_pylist() == expected([("a", seq, False, False) for seq in seqs])


def test_a_queue_in_order_is_held_as_one_run() -> None:
    collector = RunCollector()
    for start in range(0, 100_000, 1_000):
        collector.take(batch([("a", seq, False, False) for seq in range(start, start + 1_000)]))
    assert sum(one.num_rows for one in collector._held) == 100
    assert collector.runs().num_rows == 1


def test_what_does_not_get_shorter_is_not_sorted_at_every_turn(monkeypatch: Any) -> None:
    sorts = []
    monkeypatch.setattr(audit_queues, "HELD", 10)
    monkeypatch.setattr(audit_queues, "joined_runs", lambda batches: sorts.append(1) or joined_runs(batches))
    collector = RunCollector()
    for seq in range(0, 2_000, 2):
        collector.take(batch([("a", seq, False, False)]))
    assert len(sorts) < 15


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 25)), max_size=40),
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 25)), max_size=5),
)
@settings(max_examples=100, deadline=None)
def test_the_ordering_core_and_the_audit_see_the_same_runs_and_gaps(
    puts: list[tuple[str, int]], skips: list[tuple[str, int]]
) -> None:
    sorter = StreamSorter.in_memory()
    slots: dict[tuple[str, int], bool] = {}
    for queue, seq in puts:
        sorter.put({"queue": queue, "seq": seq})
        slots[queue, seq] = False
    for queue, seq in skips:
        for skipped in sorter.skip(queue, seq).skipped:
            slots[queue, skipped] = True
    collector = RunCollector()
    collector.take(batch([(queue, seq, tombstone, False) for (queue, seq), tombstone in slots.items()]))
    for name, found in queues_of(collector.runs()).items():
        found.first_seq, found.position = 0, sorter.position(name)
        assert found.gaps() == sorter.gaps(name)
        assert not found.holds(found.position + 1)
        assert {one.kind for one in findings_of(found)} == ({"gap"} if sorter.gaps(name) else set())
        assert found.messages == sum(1 for (queue, _), tombstone in slots.items() if queue == name and not tombstone)


def kinds(queue: QueueAudit) -> dict[str, list[range]]:
    return {finding.kind: list(finding.seqs) for finding in findings_of(queue)}


def test_a_gap_below_the_position_is_a_loss_and_one_beyond_it_a_wait() -> None:
    queue = QueueAudit("q", [(0, 3), (8, 9)], rows=6, first_seq=0, position=5)
    assert kinds(queue) == {"cursor_beyond_items": [range(4, 6)], "gap": [range(6, 8)]}


def test_a_queue_whose_last_released_messages_are_gone_is_found() -> None:
    assert kinds(QueueAudit("q", [(0, 3)], rows=4, first_seq=0, position=5)) == {"cursor_beyond_items": [range(4, 6)]}
    assert kinds(QueueAudit("q", [], first_seq=0, position=5)) == {"cursor_beyond_items": [range(6)]}


def test_what_was_trimmed_is_not_missing() -> None:
    assert kinds(QueueAudit("q", [(6, 9)], rows=4, first_seq=0, position=9, trimmed_through=5)) == {}
    assert kinds(QueueAudit("q", [], first_seq=0, position=5, trimmed_through=5)) == {}


def test_messages_before_the_start_are_named() -> None:
    assert kinds(QueueAudit("q", [(-2, 4)], rows=7, first_seq=0, position=4)) == {"before_start": [range(-2, 0)]}


def test_a_queue_without_a_cursor_is_a_finding_only_where_it_was_lost() -> None:
    assert kinds(QueueAudit("q", [(0, 4)], rows=5)) == {}
    (finding,) = findings_of(QueueAudit("my queue", [(0, 4)], rows=5, cursor_lost=True))
    assert (finding.kind, finding.count) == ("no_cursor", 5)
    assert finding.detail.endswith("stream-sort recover 'my queue'")


def test_what_is_in_no_slot_is_a_finding_of_the_lowest_rank() -> None:
    found = findings_of(QueueAudit("q", [(-2, 4)], rows=7, first_seq=0, position=4, no_slot=3))
    assert [(one.kind, one.count) for one in found] == [("before_start", 2), ("no_slot", 3)]


def test_conflicts_and_duplicates_are_told_apart() -> None:
    found = findings_of(QueueAudit("q", [(0, 4)], rows=9, conflicts=1))
    assert [(one.kind, one.count) for one in found] == [("conflict", 1), ("duplicate", 3)]


def test_a_consumer_past_the_position_is_a_finding_and_one_behind_it_is_not() -> None:
    queue = QueueAudit("q", [(0, 4)], rows=5, first_seq=0, position=4, checkpoints={"ahead": 7, "behind": 1})
    assert queue.lag() == {"ahead": -3, "behind": 3}
    (finding,) = findings_of(queue)
    assert (finding.kind, finding.count) == ("checkpoint_ahead", 3)
