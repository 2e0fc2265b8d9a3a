"""What an audit makes of a queue without a cursor row: one that was lost is told apart from one that never was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import StreamSorter
from stream_sort.model.message import KeyNames, take_message
from stream_sort.model.records import Arrival
from stream_sort.replay.audit.findings import findings_of
from stream_sort.replay.audit.queues import QueueAudit
from stream_sort.replay.audit.standing import StandingReader
from tests.unit.queues import message, tables_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@pytest.fixture
def sorter() -> StreamSorter:
    return StreamSorter.in_memory()


def store_past_us(sorter: StreamSorter, seqs: Iterable[int]) -> None:
    for seq in seqs:
        sorter.stores.items.put(Arrival(take_message(message(seq), KeyNames()), None), 1.0)


def joined(sorter: StreamSorter, *runs: tuple[int, int], first_seq: int = 0) -> tuple[QueueAudit, StandingReader]:
    """The queue as an audit knows it that has seen these runs."""
    audit = QueueAudit("q", list(runs), rows=sum(last - first + 1 for first, last in runs))
    standing = StandingReader(sorter, first_seq=first_seq, sleep=lambda _: None)
    standing.join({"q": audit}, {})
    return audit, standing


def kinds(audit: QueueAudit) -> dict[str, list[range]]:
    return {finding.kind: list(finding.seqs) for finding in findings_of(audit)}


def test_i10_a_row_that_was_lost_is_named_and_never_repaired(sorter: StreamSorter) -> None:
    sorter.put_many(message(seq) for seq in range(5))
    tables_of(sorter).cursors.clear()
    audit, _ = joined(sorter, (0, 4))
    assert kinds(audit) == {"no_cursor": []}
    assert not audit.stuck


def test_a_queue_whose_writer_died_before_its_first_row_is_stuck_and_an_advance_frees_it(sorter: StreamSorter) -> None:
    store_past_us(sorter, range(5))
    audit, standing = joined(sorter, (0, 4))
    (finding,) = findings_of(audit)
    assert (finding.kind, finding.detail) == ("stuck", "no cursor row was made yet; advance frees it, see --repair")
    assert standing.repair([audit]) == {}
    assert (audit.position, sorter.position("q")) == (4, 4)


def test_a_queue_that_never_began_waits_for_its_first_message(sorter: StreamSorter) -> None:
    store_past_us(sorter, [3, 4])
    assert kinds(joined(sorter, (3, 4))[0]) == {"gap": [range(3)]}


def test_where_queues_start_decides_what_is_stuck() -> None:
    sorter = StreamSorter.in_memory(first_seq=3)
    store_past_us(sorter, [1, 3, 4])
    audit, standing = joined(sorter, (1, 1), (3, 4), first_seq=3)
    assert kinds(audit) == {"stuck": [], "before_start": [range(1, 2)]}
    standing.repair([audit])
    assert sorter.position("q") == 4


def test_a_row_that_came_while_the_items_were_read_is_no_finding(sorter: StreamSorter) -> None:
    sorter.put_many(message(seq) for seq in range(9))
    audit, _ = joined(sorter, (0, 4))
    assert (kinds(audit), audit.position, audit.unbegun) == ({}, 4, False)


@pytest.mark.parametrize("port", ["heads", "cursors"])
def test_i7_an_unforeseen_error_in_one_queue_is_a_finding_of_it_and_keeps_no_other_from_being_audited(
    sorter: StreamSorter, monkeypatch: pytest.MonkeyPatch, port: str
) -> None:
    names = ("a", "bad", "c")
    for name in names:
        sorter.put_many(message(seq, queue=name) for seq in range(3))
    stored = {name: QueueAudit(name, [(0, 4)], rows=5) for name in names}
    cursors = {name: row for name in names if (row := sorter.stores.cursors.get(name)) is not None and port == "heads"}
    break_for(monkeypatch, getattr(sorter.stores, port), "bad")
    StandingReader(sorter, sleep=lambda _: None).join(stored, cursors)
    found = {name: [finding for finding in findings_of(stored[name]) if finding.kind == "failed"] for name in names}
    assert {name: len(some) for name, some in found.items()} == {"a": 0, "bad": 1, "c": 0}
    assert "unexpected ZeroDivisionError('in the middle')" in found["bad"][0].detail


def test_i7_an_unforeseen_error_in_one_queue_keeps_no_other_from_being_repaired(
    sorter: StreamSorter, monkeypatch: pytest.MonkeyPatch
) -> None:
    audits = [QueueAudit(name, stuck=True) for name in ("a", "bad", "c")]
    for audit in audits:
        sorter.put(message(0, queue=audit.queue))
    break_for(monkeypatch, sorter.stores.cursors, "bad")
    problems = StandingReader(sorter, sleep=lambda _: None).repair(audits)
    assert list(problems) == ["bad"]


def test_i7_a_queue_that_cannot_be_judged_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_: QueueAudit) -> dict[str, int]:
        raise ZeroDivisionError("in the middle")

    monkeypatch.setattr(QueueAudit, "lag", failing)
    (finding,) = findings_of(QueueAudit("q"))
    assert (finding.kind, finding.queue) == ("failed", "q")


def break_for(monkeypatch: pytest.MonkeyPatch, port: object, bad: str) -> None:
    """Lets the reads of a port meet a bug for one queue."""

    def breaking(call: Callable[..., Any]) -> Callable[..., Any]:
        def failing(queue: str, *args: Any) -> Any:
            if queue == bad:
                raise ZeroDivisionError("in the middle")
            return call(queue, *args)

        return failing

    for method in ("get", "peek", "look"):
        if hasattr(port, method):
            monkeypatch.setattr(port, method, breaking(getattr(port, method)))
