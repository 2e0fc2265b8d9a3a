"""What an audit makes of a queue without a cursor row: one that was lost is told apart from one that never was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stream_sort import StreamSorter
from stream_sort.core.message import KeyNames, take_message
from stream_sort.core.records import Arrival
from stream_sort.replay.audit.findings import findings_of
from stream_sort.replay.audit.queues import QueueAudit
from stream_sort.replay.audit.standing import Standing
from tests.unit.queues import message, tables_of

if TYPE_CHECKING:
    from collections.abc import Iterable


@pytest.fixture
def sorter() -> StreamSorter:
    return StreamSorter.in_memory()


def store_past_us(sorter: StreamSorter, seqs: Iterable[int]) -> None:
    for seq in seqs:
        sorter.stores.items.put(Arrival(take_message(message(seq), KeyNames()), None), 1.0)


def joined(sorter: StreamSorter, *runs: tuple[int, int], first_seq: int = 0) -> tuple[QueueAudit, Standing]:
    """The queue as an audit knows it that has seen these runs."""
    audit = QueueAudit("q", list(runs), rows=sum(last - first + 1 for first, last in runs))
    standing = Standing(sorter, first_seq=first_seq, sleep=lambda _: None)
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
