"""DeadLetters on DynamoDB."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from stream_sort.errors import RowDamaged
from stream_sort.model.consumption import DeadLetter, DeadLetterPage
from stream_sort.stores.dynamodb import control_rows as rows
from stream_sort.stores.dynamodb.transactions import transact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stream_sort.model.batch import Effect
    from stream_sort.stores.dynamodb.control import ControlTable
    from stream_sort.stores.dynamodb.values import Wire


class DeadLetterRow(rows.ControlRow):
    """A dead letter; a discarded one is kept for the record, and no longer listed."""

    consumer = UnicodeAttribute()
    queue = UnicodeAttribute()
    seq = NumberAttribute()
    error = UnicodeAttribute()
    attempts = NumberAttribute()
    since = NumberAttribute()
    discarded = UnicodeAttribute(null=True)
    run = UnicodeAttribute(null=True)

    @classmethod
    def of(cls, consumer: str, dead: DeadLetter) -> DeadLetterRow:
        """Return the row of a dead letter."""
        row = cls(
            *rows.place_of(consumer, dead.queue, dead.seq),
            consumer=consumer,
            queue=dead.queue,
            seq=dead.seq,
            error=dead.error,
            attempts=dead.attempts,
            since=rows.millis(dead.since),
            discarded=dead.discarded,
            run=dead.run,
        )
        if dead.discarded is None:
            row.listing, row.listed_at = rows.dead_listing(consumer), row.since
        return row

    def dead_letter(self) -> DeadLetter:
        """Return the dead letter of a row."""
        since = rows.seconds(self.since) or 0.0
        attempts, discarded = int(self.attempts), self.discarded
        return DeadLetter(self.queue, int(self.seq), self.error, attempts, since, discarded=discarded, run=self.run)


class DynamoDeadLetters:
    """DeadLetters in a control table."""

    def __init__(self, table: ControlTable) -> None:
        self._table = table

    def listed(self, consumer: str, start: Any = None) -> DeadLetterPage:
        """See DeadLetters."""
        body = self._table.listing(rows.dead_listing(consumer), rows.NEVER, start)
        return DeadLetterPage(tuple(_readable(body["Items"])), body.get("LastEvaluatedKey"))

    def of_queue(self, consumer: str, queue: str, *, discarded: bool = False) -> list[DeadLetter]:
        """See DeadLetters."""
        pk, _ = rows.place_of(consumer, queue)
        dead = map(_dead_letter, self._table.query(pk, "dead#"))
        return [one for one in dead if (one.discarded is not None) is discarded]

    def settle(self, consumer: str, old: DeadLetter, new: DeadLetter | None, effects: Sequence[Effect] = ()) -> bool:
        """See DeadLetters."""
        kind = DeadLetterRow
        attempts_are_old, is_kept = kind.attempts == old.attempts, kind.discarded.does_not_exist()
        run_is_old = kind.run.does_not_exist() if old.run is None else kind.run == old.run
        is_as_read = attempts_are_old & run_is_old & is_kept
        if new is not None:
            action = self._table.put_action(DeadLetterRow.of(consumer, new), is_as_read)
        else:
            key = rows.key_of(*rows.place_of(consumer, old.queue, old.seq))
            action = {"Delete": {"TableName": self._table.name, "Key": key, **rows.condition_of(is_as_read)}}
        return not transact(self._table.calls, self._table.name, [action], old.queue, effects).refused


def _dead_letter(wire: Wire) -> DeadLetter:
    return rows.row_of(DeadLetterRow, wire).dead_letter()


def _readable(wires: Iterable[Wire]) -> Iterator[DeadLetter]:
    """Return those that can be read: a damaged one is its own queue's trouble, and shows when that is looked at."""
    for wire in wires:
        with suppress(RowDamaged):
            yield _dead_letter(wire)
