from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stream_sort.replay.backfill.ledger import Ledger, PartRecord
from stream_sort.replay.backfill.options import BackfillOptions, SinkOptions
from stream_sort.replay.backfill.plan import left_over
from stream_sort.replay.backfill.tally import RangeTally
from stream_sort.replay.engine.plan import JobPlan
from stream_sort.replay.engine.source import Source
from stream_sort.replay.ranges import Part, Range

if TYPE_CHECKING:
    from pathlib import Path

PLAN = JobPlan({}, (Part(0, (Range("a", -1, 9), Range("b", -1, 3))),), 1.0)
HOLED = RangeTally("a", -1, 9, 9, rows=9, missing=(Range("a", 3, 4),))
WHOLE = RangeTally("b", -1, 3, 3, rows=4)


@pytest.mark.parametrize(
    ("skipped_then", "on_gap", "again"),
    [(False, "report", True), (False, "skip", True), (True, "report", True), (True, "skip", False)],
)
def test_a_queue_with_a_hole_is_delivered_again_unless_the_hole_was_skipped_for_good(
    tmp_path: Path, *, skipped_then: bool, on_gap: str, again: bool
) -> None:
    sink = SinkOptions("kinesis", target="stream")
    options = BackfillOptions(Source("Items", "Cursor"), sink, checkpoint=str(tmp_path), on_gap=on_gap)
    ledger = Ledger(options.ledger)
    ledger.commit(PartRecord(0, (HOLED, WHOLE), ended=True, skips=skipped_then))
    left, records = left_over(options, PLAN, ledger, holes_stay=False)
    assert left == ([Part(0, (Range("a", -1, 9),))] if again else [])
    assert records[0].tallies == ((RangeTally("a", -1, 9, -1, again=1) if again else HOLED), WHOLE)
    assert ledger.record(0) == records[0]
