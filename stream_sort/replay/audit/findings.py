"""What is wrong with a queue, judged by what an audit knows of it. Pure.

The kinds, worst first, are the keys of KINDS.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stream_sort.errors import named_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stream_sort.replay.audit.queues import QueueAudit

KINDS = {
    "damaged": "files of the archive are missing or changed",
    "failed": "the queue could not be looked at, so nothing is known of it for certain",
    "cursor_beyond_items": "released messages are not there",
    "no_cursor": "there was a cursor row, and it is lost",
    "conflict": "two different messages are in one place",
    "checkpoint_ahead": "a consumer is past the position",
    "stuck": "the next message is there, and not released",
    "gap": "messages are missing",
    "duplicate": "the same message is there twice",
    "before_start": "messages lie before the start of the queue, and are never released",
    "no_slot": "items have a seq that is none, such as 1.5; nobody ever reads them",
}
RANKS = {kind: rank for rank, kind in enumerate(KINDS)}
# Ranges that are told of one finding; all of them are in the detail.
SHOWN = 20
# Ranges that are told in one line.
TOLD = 5


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """One thing that is wrong with a queue; `seqs` are the ranges concerned, `count` how many those are, or items."""

    queue: str
    kind: str
    count: int
    seqs: tuple[range, ...] = ()
    detail: str = ""
    repaired: bool = False

    @property
    def rank(self) -> tuple[bool, int, int, str]:
        """Sorts the worst first."""
        return self.repaired, RANKS[self.kind], -self.count, self.queue

    @property
    def line(self) -> str:
        """The finding for people, in one line: its kind, where it is, and what that means."""
        seqs = [str(one.start) if one.stop - one.start == 1 else f"{one.start}-{one.stop - 1}" for one in self.seqs]
        more = f" and {len(seqs) - TOLD:,} more ranges" if len(seqs) > TOLD else ""
        where = f" of seq {', '.join(seqs[:TOLD])}{more}" if seqs else ""
        return f"{self.kind}{where}: {KINDS[self.kind]}" + (f"; {self.detail}" if self.detail else "")

    def document(self) -> dict[str, Any]:
        """Return the finding for programs."""
        ranges = [[one.start, one.stop - 1] for one in self.seqs[:SHOWN]]
        return {
            "queue": self.queue,
            "kind": self.kind,
            "count": self.count,
            "seqs": ranges,
            "more_ranges": max(0, len(self.seqs) - SHOWN),
            "detail": self.detail or KINDS[self.kind],
            "repaired": self.repaired,
        }


def findings_of(queue: QueueAudit) -> list[AuditFinding]:
    """Everything that is wrong with a queue, worst first; an error that nobody foresaw is a finding of that queue."""
    try:
        found = list(_findings(queue))
    except Exception as error:  # noqa: BLE001  # I7: one queue's trouble keeps no other one from being audited
        found = []
        queue.error = queue.error or str(named_error(queue.queue, error))
    if queue.error:
        found.append(AuditFinding(queue.queue, "failed", 1, detail=queue.error))
    return sorted(found, key=lambda one: one.rank)


def _findings(queue: QueueAudit) -> Iterator[AuditFinding]:
    yield from _of_items(queue)
    yield from _of_cursor(queue)
    for name, lag in queue.lag().items():
        if lag < 0:
            yield AuditFinding(
                queue.queue, "checkpoint_ahead", -lag, detail=f"consumer {name!r} is at {queue.checkpoints[name]}"
            )


def _of_items(queue: QueueAudit) -> Iterator[AuditFinding]:
    missing, waiting = _split(queue.gaps(), queue.position)
    if missing:
        yield _ranges(queue, "cursor_beyond_items", missing, f"the position is {queue.position}")
    if waiting:
        told = f"it never began; queues start at {queue.first_seq}, see --first-seq" if queue.unbegun else ""
        yield _ranges(queue, "gap", waiting, told)
    if queue.conflicts:
        yield AuditFinding(queue.queue, "conflict", queue.conflicts)
    if queue.duplicates > queue.conflicts:
        yield AuditFinding(queue.queue, "duplicate", queue.duplicates - queue.conflicts)
    below = _below(queue)
    if below:
        yield _ranges(queue, "before_start", below, f"the queue starts at {queue.first_seq}")
    if queue.no_slot:
        yield AuditFinding(queue.queue, "no_slot", queue.no_slot)


def _of_cursor(queue: QueueAudit) -> Iterator[AuditFinding]:
    if queue.cursor_lost:
        told = f"it is never made anew by itself; put it back: stream-sort recover {shlex.quote(queue.queue)}"
        yield AuditFinding(queue.queue, "no_cursor", queue.seqs, detail=told)
    if queue.stuck:
        where = "no cursor row was made yet" if queue.unbegun else f"the position is {queue.position}"
        yield AuditFinding(queue.queue, "stuck", 1, detail=f"{where}; advance frees it, see --repair")


def _split(gaps: Sequence[range], position: int | None) -> tuple[list[range], list[range]]:
    """Return the parts of gaps up to the position, which must not be, and those beyond it."""
    if position is None:
        return [], list(gaps)
    released = [range(gap.start, min(gap.stop, position + 1)) for gap in gaps]
    waiting = [range(max(gap.start, position + 1), gap.stop) for gap in gaps]
    return [gap for gap in released if gap], [gap for gap in waiting if gap]


def _below(queue: QueueAudit) -> list[range]:
    if queue.first_seq is None:
        return []
    below = [range(first, min(last + 1, queue.first_seq)) for first, last in queue.runs if first < queue.first_seq]
    return [one for one in below if one]


def _ranges(queue: QueueAudit, kind: str, seqs: Sequence[range], detail: str = "") -> AuditFinding:
    # Not len(): a range may be longer than that can tell.
    return AuditFinding(queue.queue, kind, sum(one.stop - one.start for one in seqs), tuple(seqs), detail)
