"""What an audit says to people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from stream_sort.model.message import MAX_SEQ
from stream_sort.replay.audit.findings import AuditFinding
from stream_sort.replay.audit.queues import QueueAudit
from stream_sort.replay.audit.report import TOLD, AuditResult
from stream_sort.replay.files.storage import Storage

if TYPE_CHECKING:
    from pathlib import Path


def text_of(*findings: AuditFinding) -> str:
    return AuditResult("table Items", [QueueAudit("ada")], findings).report().text()


def test_each_finding_is_told_with_what_to_do_about_it() -> None:
    text = text_of(
        AuditFinding("ada", "no_cursor", 3, detail="put it back: stream-sort recover ada"),
        AuditFinding("ada", "gap", 2, (range(4, 6),)),
        AuditFinding("", "damaged", 0, detail="archive/queues/zz: move it out of the archive"),
    )
    assert "\nqueue 'ada': no_cursor: there was a cursor row, and it is lost; put it back: stream-sort recover" in text
    assert "\nqueue 'ada': gap of seq 4-5: messages are missing\n" in text
    assert "\ndamaged: files of the archive are missing or changed; archive/queues/zz: move it out" in text


def test_of_many_findings_the_worst_are_told_and_where_the_others_are() -> None:
    gaps = [AuditFinding("ada", "gap", 1, (range(seq, seq + 1),)) for seq in range(TOLD + 2)]
    text = text_of(*gaps)
    assert text.count("queue 'ada': gap") == TOLD
    assert "and 2 more findings: see --json, --out or --detail" in text


def test_what_was_repaired_needs_nothing_more() -> None:
    assert "queue 'ada': stuck" not in text_of(AuditFinding("ada", "stuck", 1, detail="advanced to 7", repaired=True))


def test_the_longest_gap_there_can_be_ends_no_detail(tmp_path: Path) -> None:
    queues = [QueueAudit("long", [(MAX_SEQ, MAX_SEQ)], rows=1, position=-2, first_seq=-1), QueueAudit("q")]
    AuditResult("tables", queues, []).write_detail(Storage(str(tmp_path)), "parquet")
    rows = pq.read_table(tmp_path).to_pylist()
    assert [(row["queue"], row["missing"], row["gaps"]) for row in rows] == [
        ("long", MAX_SEQ, [{"first": -1, "last": MAX_SEQ - 1}]),
        ("q", 0, []),
    ]
