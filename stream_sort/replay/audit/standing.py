"""Where cursors and consumers stand, beside what is stored; and whether what looks wrong still does at a second look.

An audit of live tables takes a while, and they move on meanwhile. Cursor rows are read before the items: what a row
says is released was stored before, so the scan must see it. What was stored or released since then is no finding:
suspects are looked at again, consistently.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from stream_sort.errors import CursorLost, QueueNotFound, StoreMisconfigured, named_error, raise_unavailable
from stream_sort.model.consumption import first_checkpoint
from stream_sort.model.records import Cursor
from stream_sort.release.lost_cursor import find_row
from stream_sort.replay.audit.findings import AuditFinding
from stream_sort.replay.audit.queues import QueueAudit
from stream_sort.replay.files.storage import AT_ONCE
from stream_sort.replay.origins.access import cursor_pages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from stream_sort.model.consumption import Subscription
    from stream_sort.ports import ControlStores
    from stream_sort.sorter import Sorter

Answer = TypeVar("Answer")
# A writer that has stored its message moves the cursor within that time, unless it has died.
GRACE = 2.0


@dataclass(frozen=True, slots=True)
class StandingReader:
    """Looks at the cursor and control tables for an audit; `first_seq` is where the sorter lets queues start."""

    sorter: Sorter
    control_table: str = ""
    first_seq: int = 0
    sleep: Callable[[float], None] = time.sleep

    def cursors(self, queues: tuple[str, ...] | None) -> dict[str, Cursor]:
        """Return the cursor rows of all queues, or of those named; one that is damaged is looked at again by itself."""
        store = self.sorter.homes.only.cursors
        if queues is not None:
            page = store.rows_of(queues)
            raise_unavailable(page.damaged)
            return {cursor.queue: cursor for cursor in page.rows}
        return {cursor.queue: cursor for page in cursor_pages(store) for cursor in page.rows}

    def join(self, queues: dict[str, QueueAudit], cursors: Mapping[str, Cursor]) -> list[AuditFinding]:
        """Add to what is stored where the cursors were before it was looked at, and where consumers are.

        Return a finding for each consumer whose registration cannot be read: it is left out.
        """
        for name, cursor in cursors.items():
            _set(queues.setdefault(name, QueueAudit(name)), cursor)
        self._look_again(queues)
        if not self.control_table:
            return []
        control = self.sorter.homes.only.control(self.control_table)
        known = control.subscriptions.readable_consumers()
        for consumer in known.active():
            self._add_consumer(consumer, queues, cursors, control)
        return [AuditFinding(f"(consumer {name})", "failed", 1, detail=str(why)) for name, why in known.damaged.items()]

    def repair(self, stuck: Sequence[QueueAudit]) -> dict[str, str]:
        """Advance queues; says what could not be done, by queue."""
        problems = AT_ONCE.map(self._advance, stuck)
        return {audit.queue: problem for audit, problem in zip(stuck, problems, strict=True) if problem}

    def _look_again(self, queues: Mapping[str, QueueAudit]) -> None:
        _tried(self._find_row, [one for one in queues.values() if one.position is None and one.runs])
        _tried(self._read_floor, _tried_if(_lacks_released, queues.values()))
        suspects = [one for one in queues.values() if one.position is not None and one.holds(one.position + 1)]
        still = [one for one, stuck in zip(suspects, _tried(self._is_stuck, suspects), strict=True) if stuck]
        if still:
            self.sleep(GRACE)
        for audit, stuck in zip(still, _tried(self._is_stuck, still), strict=True):
            audit.stuck = bool(stuck)

    def _find_row(self, audit: QueueAudit) -> None:
        """Find the row of a queue that had none when looked at: it has one now, has lost it, or never had one."""
        home = self.sorter.homes.of(audit.queue)
        try:
            cursor = find_row(home.items, home.cursors, audit.queue)
        except CursorLost:
            audit.cursor_lost = True
            return
        audit.unbegun = cursor is None
        cursor = cursor or Cursor(audit.queue, self.first_seq - 1, self.first_seq)
        _set(audit, cursor)
        # Begun since: what is beyond the items that were seen came after them.
        audit.position = cursor.position if audit.last is None or audit.unbegun else min(cursor.position, audit.last)

    def _read_floor(self, audit: QueueAudit) -> None:
        """Read again how far a queue is trimmed that lacks what is released: it may have been trimmed since."""
        cursor = self.sorter.homes.of(audit.queue).cursors.get(audit.queue)
        if cursor is not None:
            audit.trimmed_through = cursor.floor

    def _is_stuck(self, audit: QueueAudit) -> bool:
        """Return True if the slot behind the position, as it is now, is taken."""
        position = audit.position
        while position is not None:
            head = self.sorter.homes.of(audit.queue).heads.peek(audit.queue, position + 1)
            if head.cursor is None or head.cursor.position == position:
                return head.taken and (head.cursor is not None or audit.unbegun)
            position = head.cursor.position
        return False

    def _advance(self, audit: QueueAudit) -> str:
        try:
            audit.position = self.sorter.advance(audit.queue).new
        except Exception as error:  # noqa: BLE001  # I7: one queue's trouble keeps no other one from being repaired
            return str(named_error(audit.queue, error))
        return ""

    def _add_consumer(
        self,
        consumer: Subscription,
        queues: Mapping[str, QueueAudit],
        cursors: Mapping[str, Cursor],
        control: ControlStores,
    ) -> None:
        found = control.checkpoints.of_queues(consumer.name, list(cursors))
        for name, error in found.damaged.items():
            queues[name].error = queues[name].error or str(error)
        for name, cursor in cursors.items():
            if name in found.damaged:
                continue
            row = found.rows.get(name)
            seq = first_checkpoint(consumer.start, cursor) if row is None else row.seq
            # The position was read first; it may have moved on, and the consumer with it.
            if seq > cursor.position and (row is None or self._has_reached(queues[name], seq)):
                seq = cursor.position
            queues[name].checkpoints[consumer.name] = seq

    def _has_reached(self, audit: QueueAudit, seq: int) -> bool:
        """Return True if the position is at a seq by now, or nobody can tell."""
        (answer,) = _tried(lambda one: seq <= self.sorter.position(one.queue), [audit])
        return answer is not False


def _tried(work: Callable[[QueueAudit], Answer], given: Iterable[QueueAudit]) -> list[Answer | None]:
    """Return the answers; an error in one queue, also one that nobody foresaw, is noted there and stops no other."""

    def tried(audit: QueueAudit) -> Answer | None:
        try:
            return work(audit)
        except StoreMisconfigured:
            # No queue can escape it.
            raise
        except Exception as error:  # noqa: BLE001  # I7
            audit.error = audit.error or str(named_error(audit.queue, error))
            return None

    return AT_ONCE.map(tried, list(given))


def _tried_if(is_so: Callable[[QueueAudit], bool], given: Iterable[QueueAudit]) -> list[QueueAudit]:
    audits = list(given)
    return [audit for audit, answer in zip(audits, _tried(is_so, audits), strict=True) if answer]


def check_queues_found(wanted: Iterable[str], queues: Mapping[str, QueueAudit]) -> None:
    """Raise QueueNotFound for a queue that was named and is nowhere."""
    for name in wanted:
        if name not in queues:
            raise QueueNotFound(name)


def _set(audit: QueueAudit, cursor: Cursor) -> None:
    audit.position, audit.first_seq, audit.trimmed_through = cursor.position, cursor.first_seq, cursor.floor


def _lacks_released(audit: QueueAudit) -> bool:
    return audit.position is not None and any(gap.start <= audit.position for gap in audit.gaps())
