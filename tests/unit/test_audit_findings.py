"""What an audit finds is told in one line: its kind, which seqs, and what that means."""

from __future__ import annotations

import pytest

from stream_sort.replay.audit.findings import AuditFinding


@pytest.mark.parametrize(
    ("finding", "line"),
    [
        (
            AuditFinding("q", "cursor_beyond_items", 1, (range(5, 6),), "the position is 8"),
            "cursor_beyond_items of seq 5: released messages are not there; the position is 8",
        ),
        (AuditFinding("q", "gap", 4, (range(5, 6), range(7, 10))), "gap of seq 5, 7-9: messages are missing"),
        (
            AuditFinding("q", "gap", 7, tuple(range(at, at + 1) for at in range(0, 14, 2))),
            "gap of seq 0, 2, 4, 6, 8 and 2 more ranges: messages are missing",
        ),
        (AuditFinding("q", "gap", 2**62, (range(1, 2**63),)), f"gap of seq 1-{2**63 - 1}: messages are missing"),
        (AuditFinding("q", "conflict", 2), "conflict: two different messages are in one place"),
    ],
)
def test_a_finding_is_told_in_one_line(finding: AuditFinding, line: str) -> None:
    assert finding.line == line
