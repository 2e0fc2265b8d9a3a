from __future__ import annotations

import pickle
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stream_sort.errors import SettingsError, StoreError
from stream_sort.replay.backfill.ledger import Ledger, PartRecord, RunningParts
from stream_sort.replay.backfill.tally import NOT_DONE, RangeTally, added_up
from stream_sort.replay.engine.plan import JobPlan
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.ranges import Part, Range

if TYPE_CHECKING:
    from pathlib import Path

PLAN = JobPlan({"sink": "jsonl"}, (Part(0, (Range("a", -1, 9),)),), 1.0)
TALLY = RangeTally("a", -1, 9, 5, rows=3, tombstones=1, missing=(Range("a", 1, 3),))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(Storage(str(tmp_path / "ledger")))


def test_the_first_plan_stays_and_whoever_comes_later_goes_by_it(ledger: Ledger) -> None:
    assert ledger.plan() is None
    assert ledger.begin(PLAN) is PLAN
    later = JobPlan(PLAN.options, (Part(0, (Range("a", -1, 20),)),), 2.0)
    assert ledger.begin(later).parts == PLAN.parts
    with pytest.raises(SettingsError, match="--sink was 'jsonl' and is now 'table'"):
        ledger.begin(JobPlan({"sink": "table"}, (), 3.0))


def test_records_come_back_as_they_were_written_last(ledger: Ledger) -> None:
    assert ledger.record(7) is None
    ledger.commit(PartRecord(7, (TALLY,), ended=False))
    ledger.commit(PartRecord(7, (TALLY, RangeTally.of(Range("b", 0, 2))), ended=True))
    ledger.commit(PartRecord(12, (), ended=True))
    again = pickle.loads(pickle.dumps(ledger))
    assert again.record(7) == PartRecord(7, (TALLY, RangeTally("b", 0, 2, 0)), ended=True)
    assert sorted(again.records()) == [7, 12]


def test_a_record_of_before_it_was_told_how_often_a_queue_was_begun_is_read() -> None:
    wire = replace(TALLY, again=2).wire()
    assert RangeTally.from_wire(wire).again == 2
    assert RangeTally.from_wire(wire[:-1]) == TALLY


def test_a_damaged_record_is_named(ledger: Ledger) -> None:
    ledger.storage.write("parts/0000003.json", b"{")
    with pytest.raises(StoreError, match=r"parts/0000003.json is no record"):
        ledger.records()


def test_what_is_under_way_counts_until_its_part_has_ended(ledger: Ledger) -> None:
    under_way = RunningParts(ledger, [7, 8, 9], {7: 1})
    assert under_way() == 0
    ledger.commit(PartRecord(7, (TALLY,), ended=False))
    ledger.commit(PartRecord(8, (TALLY,), ended=True))
    assert under_way() == 3 + 4
    under_way.ended(8)
    assert under_way() == 3
    ledger.storage.write("parts/0000009.json", b"{")
    assert under_way() == 0


def test_the_end_is_noted_once(ledger: Ledger) -> None:
    assert ledger.end() is None
    ledger.finish({"finished_at": 1.0, "queues": [TALLY.wire()]})
    ledger.finish({"finished_at": 2.0, "queues": []})
    assert ledger.end() == {"finished_at": 1.0, "queues": [TALLY.wire()]}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'"end"',
        b'{"finished_at": "then", "queues": []}',
        b'{"finished_at": 1.0}',
        b'{"finished_at": 1.0, "queues": [["a"]]}',
        b'{"finished_at": 1e300, "queues": []}',
    ],
)
def test_a_damaged_end_is_named(ledger: Ledger, content: bytes) -> None:
    ledger.storage.write("end.json", content)
    with pytest.raises(StoreError, match=r"end.json is no end of a job"):
        ledger.end()


def test_a_tally_is_whole_when_every_seq_is_a_slot_and_done_when_the_holes_are_known() -> None:
    assert not TALLY.is_done
    done = RangeTally("a", -1, 9, 9, rows=7, tombstones=1, missing=(Range("a", 1, 3),))
    assert (done.is_done, done.is_whole, done.lost) == (True, False, 2)
    assert RangeTally("a", -1, 9, 9, rows=9, tombstones=1).is_whole
    assert not RangeTally("a", -1, 9, 9, rows=9, tombstones=1, failed="why").is_whole


@pytest.mark.parametrize("problems", [("why", NOT_DONE), (NOT_DONE, "why"), ("", "why"), ("why", "")])
def test_of_a_queues_problems_the_one_that_says_why_is_told(problems: tuple[str, str]) -> None:
    ranges = [RangeTally("a", -1, 4, -1, failed=problems[0]), RangeTally("a", 4, 9, 4, failed=problems[1])]
    assert added_up(ranges)[0].failed == "why"
    assert added_up([ranges[0], RangeTally("a", 4, 9, 9, rows=5)])[0].failed == problems[0]


def test_tallies_of_a_queue_add_up() -> None:
    first, second = RangeTally("a", -1, 4, 4, rows=5), RangeTally("a", 4, 9, 9, rows=3, missing=(Range("a", 5, 7),))
    assert added_up([second, RangeTally("b", 0, 1, 1, 1), first]) == [
        RangeTally("a", -1, 9, 9, rows=8, missing=(Range("a", 5, 7),)),
        RangeTally("b", 0, 1, 1, 1),
    ]
