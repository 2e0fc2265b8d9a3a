"""Checkpoints on DynamoDB: every change is one conditional write, or one transaction with a handler's effects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pynamodb.attributes import BooleanAttribute, NumberAttribute, UnicodeAttribute

from stream_sort.errors import EffectRefused, RowDamaged
from stream_sort.model.consumption import Checkpoint, Commit, FoundCheckpoints, Parked, ParkedPage, Standing
from stream_sort.stores.dynamodb import control_rows as rows
from stream_sort.stores.dynamodb.cursors import row_of as cursor_of
from stream_sort.stores.dynamodb.dead_letters import DeadLetterRow
from stream_sort.stores.dynamodb.subscriptions import CONSUMERS, ConsumerRow
from stream_sort.stores.dynamodb.transactions import transact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.model.batch import Effect
    from stream_sort.model.consumption import DeadLetter, Subscription
    from stream_sort.stores.dynamodb.calls import Reply
    from stream_sort.stores.dynamodb.control import ControlTable
    from stream_sort.stores.dynamodb.tables import TableNames
    from stream_sort.stores.dynamodb.values import Wire


class CheckpointRow(rows.ControlRow):
    """A checkpoint, and where the queue is parked."""

    consumer = UnicodeAttribute()
    queue = UnicodeAttribute()
    seq = NumberAttribute()
    version = NumberAttribute()
    run = UnicodeAttribute()
    committed_at = NumberAttribute(null=True)
    parked_seq = NumberAttribute(null=True)
    parked_since = NumberAttribute(null=True)
    error = UnicodeAttribute(null=True)
    attempts = NumberAttribute(null=True)
    next_try = NumberAttribute(null=True)
    damaged = BooleanAttribute(null=True)
    replayed_through = NumberAttribute(null=True)
    replayed_after = NumberAttribute(null=True)
    began = NumberAttribute(null=True)

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> CheckpointRow:
        """Return the row of a checkpoint."""
        row = cls(
            *rows.place_of(checkpoint.consumer, checkpoint.queue),
            consumer=checkpoint.consumer,
            queue=checkpoint.queue,
            seq=checkpoint.seq,
            version=checkpoint.version,
            run=checkpoint.run,
            committed_at=rows.millis(checkpoint.committed_at),
            replayed_through=checkpoint.replayed_through,
            replayed_after=checkpoint.replayed_after,
            began=checkpoint.began,
        )
        if checkpoint.parked is not None:
            row.park(checkpoint.parked)
        return row

    def park(self, parked: Parked) -> None:
        """Note where the queue is parked, and list it."""
        self.parked_seq, self.attempts, self.error = parked.seq, parked.attempts, parked.error
        self.parked_since, self.next_try = rows.millis(parked.since), rows.millis(parked.next_try)
        self.damaged = parked.damaged or None
        self.listing = rows.parked_listing(self.consumer)
        self.listed_at = rows.NEVER if self.next_try is None else self.next_try

    def checkpoint(self) -> Checkpoint:
        """Return the checkpoint of a row."""
        return Checkpoint(
            self.consumer,
            self.queue,
            int(self.seq),
            int(self.version),
            self.run,
            rows.seconds(self.committed_at),
            self.parked(),
            rows.whole(self.replayed_through),
            rows.whole(self.replayed_after),
            rows.whole(self.began),
        )

    def parked(self) -> Parked | None:
        """Return where the queue is parked."""
        # pynamodb's types do not say that an attribute may be absent.
        seq: float | None = cast("float | None", self.parked_seq)
        if seq is None:
            return None
        since = rows.seconds(self.parked_since) or 0.0
        error, attempts = str(self.error), int(self.attempts or 0)
        return Parked(self.queue, int(seq), error, attempts, since, rows.seconds(self.next_try), bool(self.damaged))


class DynamoCheckpoints:
    """Checkpoints in a control table."""

    def __init__(self, table: ControlTable, names: TableNames) -> None:
        self._table = table
        self._names = names

    def standing(self, consumer: str, queue: str, slot: int | None = None) -> Standing:
        """See Checkpoints."""
        keys = self._names.keys
        cursor_key = {keys.queue: {"S": queue}}
        request: dict[str, dict[str, Any]] = {
            self._table.name: {"Keys": [rows.key_of(*rows.place_of(consumer, queue))]},
            self._names.cursor: {"Keys": [cursor_key]},
        }
        if slot is not None:
            only_key = {"ProjectionExpression": "#seq", "ExpressionAttributeNames": {"#seq": keys.seq}}
            request[self._names.items] = {"Keys": [{**cursor_key, keys.seq: {"N": str(slot)}}], **only_key}
        found = self._table.batch_get(request)
        checkpoint = found[self._table.name]
        cursor = found[self._names.cursor]
        return Standing(
            _checkpoint(checkpoint[0]) if checkpoint else None,
            cursor_of(cursor[0], keys.queue, keys.seq) if cursor else None,
            None if slot is None else bool(found[self._names.items]),
        )

    def create(self, checkpoint: Checkpoint, starting: Subscription | None = None) -> Commit:
        """See Checkpoints."""
        row, row_is_absent = CheckpointRow.of(checkpoint), CheckpointRow.pk.does_not_exist()
        if starting is None:
            return _committed(self._table.put(row, row_is_absent), checkpoint)
        key = rows.key_of(CONSUMERS, starting.name)
        is_starting = rows.condition_of(ConsumerRow.ready == False)  # noqa: E712  # pynamodb's way to say it
        check = {"ConditionCheck": {"TableName": self._table.name, "Key": key, **is_starting}}
        try:
            actions = [self._table.put_action(row, row_is_absent), check]
            return _committed(transact(self._table.calls, self._table.name, actions, checkpoint.queue, ()), checkpoint)
        except EffectRefused:
            # The second condition: its first checkpoints are set by now.
            return Commit(won=False, checkpoint=None)

    def commit(
        self,
        old: Checkpoint,
        new: Checkpoint,
        effects: Sequence[Effect] = (),
        dead: DeadLetter | None = None,
    ) -> Commit:
        """See Checkpoints."""
        row = CheckpointRow.of(new)
        version_is_old = CheckpointRow.version == old.version
        if not effects and dead is None:
            return _committed(self._table.put(row, version_is_old), new)
        actions = [self._table.put_action(row, version_is_old)]
        if dead is not None:
            actions.append(self._table.put_action(DeadLetterRow.of(new.consumer, dead)))
        return _committed(transact(self._table.calls, self._table.name, actions, new.queue, effects), new)

    def of_queues(self, consumer: str, queues: Sequence[str]) -> FoundCheckpoints:
        """See Checkpoints."""
        found = FoundCheckpoints({})
        read = self._table.found([rows.key_of(*rows.place_of(consumer, queue)) for queue in queues])
        for wire in read.rows:
            _take(wire, found)
        if read.error is not None:
            found.damaged.update(dict.fromkeys(map(rows.queue_of, read.unread), read.error))
        return found

    def parked(self, consumer: str, before: float | None = None, start: Any = None) -> ParkedPage:
        """See Checkpoints."""
        latest = rows.NEVER if before is None else round(before * 1000)
        body = self._table.listing(rows.parked_listing(consumer), latest, start)
        found = FoundCheckpoints({})
        for wire in body["Items"]:
            _take(wire, found)
        parked = tuple(row.parked for row in found.rows.values() if row.parked is not None)
        return ParkedPage(parked, body.get("LastEvaluatedKey"), found.damaged)


def _committed(reply: Reply, new: Checkpoint) -> Commit:
    if not reply.refused:
        return Commit(won=True, checkpoint=new)
    reasons = reply.body.get("CancellationReasons")
    wire = reasons[0].get("Item") if reasons else reply.item
    return Commit(won=False, checkpoint=_checkpoint(wire) if wire else None)


def _take(wire: Wire, found: FoundCheckpoints) -> None:
    """Take a checkpoint in by its queue, as its key names it; one that cannot be read by its error."""
    queue = rows.queue_of(wire)
    try:
        found.rows[queue] = _checkpoint(wire)
    except RowDamaged as error:
        found.damaged[queue] = error


def _checkpoint(wire: Wire) -> Checkpoint:
    return rows.row_of(CheckpointRow, wire).checkpoint()
