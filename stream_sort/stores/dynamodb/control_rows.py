"""The rows of the control table as pynamodb models: they give rows their form and conditions their text.

Requests go through `Calls` like all others, so that one client, one deadline and one table of errors serve everything.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pynamodb.attributes import BooleanAttribute, NumberAttribute, UnicodeAttribute
from pynamodb.models import Model

from stream_sort.errors import RowDamaged, SettingsError, shown
from stream_sort.model.consumption import Checkpoint, DeadLetter, Parked, Subscription, check_start
from stream_sort.ports.archive import Archived
from stream_sort.stores.dynamodb import tables

if TYPE_CHECKING:
    from pynamodb.expressions.condition import Condition

    from stream_sort.stores.dynamodb.values import Wire

    Row = TypeVar("Row", bound="ControlRow")

CHECKPOINT = "checkpoint"
CONSUMERS = "consumers"
SWEEP = "sweep"
# Not "bookmark", under which an earlier version keeps what this one could not read, and the other way round.
BOOKMARK = "watch"
# The place in a listing of what is not tried again by itself.
NEVER = 2**53
SEQ_OFFSET = 2**63


class ControlRow(Model):
    """Any row: what it is about stands in its keys; what is to be listed stands in the sparse index."""

    class Meta:
        """The table's name comes from the settings, with each request."""

        table_name = "control"

    pk = UnicodeAttribute(hash_key=True, attr_name=tables.CONTROL_PK)
    sk = UnicodeAttribute(range_key=True, attr_name=tables.CONTROL_SK)
    listing = UnicodeAttribute(null=True, attr_name=tables.LISTING)
    listed_at = NumberAttribute(null=True, attr_name=tables.LISTED_AT)


class CheckpointRow(ControlRow):
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
        """The row of a checkpoint."""
        row = cls(
            *place_of(checkpoint.consumer, checkpoint.queue),
            consumer=checkpoint.consumer,
            queue=checkpoint.queue,
            seq=checkpoint.seq,
            version=checkpoint.version,
            run=checkpoint.run,
            committed_at=_millis(checkpoint.committed_at),
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
        self.parked_since, self.next_try = _millis(parked.since), _millis(parked.next_try)
        self.damaged = parked.damaged or None
        self.listing = parked_listing(self.consumer)
        self.listed_at = NEVER if self.next_try is None else self.next_try

    def checkpoint(self) -> Checkpoint:
        """The checkpoint of a row."""
        return Checkpoint(
            self.consumer,
            self.queue,
            int(self.seq),
            int(self.version),
            self.run,
            _seconds(self.committed_at),
            self.parked(),
            _whole(self.replayed_through),
            _whole(self.replayed_after),
            _whole(self.began),
        )

    def parked(self) -> Parked | None:
        """Where the queue is parked."""
        # pynamodb's types do not say that an attribute may be absent.
        seq: float | None = cast("float | None", self.parked_seq)
        if seq is None:
            return None
        since = _seconds(self.parked_since) or 0.0
        error, attempts = str(self.error), int(self.attempts or 0)
        return Parked(self.queue, int(seq), error, attempts, since, _seconds(self.next_try), bool(self.damaged))


class DeadLetterRow(ControlRow):
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
    def of(cls, consumer: str, letter: DeadLetter) -> DeadLetterRow:
        """The row of a dead letter."""
        row = cls(
            *place_of(consumer, letter.queue, letter.seq),
            consumer=consumer,
            queue=letter.queue,
            seq=letter.seq,
            error=letter.error,
            attempts=letter.attempts,
            since=_millis(letter.since),
            discarded=letter.discarded,
            run=letter.run,
        )
        if letter.discarded is None:
            row.listing, row.listed_at = dead_listing(consumer), row.since
        return row

    def letter(self) -> DeadLetter:
        """The dead letter of a row."""
        since = _seconds(self.since) or 0.0
        attempts, discarded = int(self.attempts), self.discarded
        return DeadLetter(self.queue, int(self.seq), self.error, attempts, since, discarded=discarded, run=self.run)


class ConsumerRow(ControlRow):
    """A consumer that is known; one that is retired stays, with the time."""

    start = UnicodeAttribute()
    since = NumberAttribute()
    ready = BooleanAttribute()
    retired_at = NumberAttribute(null=True)

    @classmethod
    def of(cls, subscription: Subscription) -> ConsumerRow:
        """The row of a consumer."""
        return cls(
            CONSUMERS,
            subscription.name,
            start=subscription.start,
            since=_millis(subscription.since),
            ready=subscription.ready,
            retired_at=_millis(subscription.retired_at),
        )

    def subscription(self) -> Subscription:
        """The consumer of a row; RowDamaged for one whose start is none."""
        since, retired_at = _seconds(self.since) or 0.0, _seconds(self.retired_at)
        try:
            start = check_start(self.start)
        except SettingsError as error:
            text = f"the control table holds a registration of {shown(self.sk)} that is not ours: {error}"
            raise RowDamaged(text) from error
        return Subscription(str(self.sk), start, since, ready=bool(self.ready), retired_at=retired_at)


class BookmarkRow(ControlRow):
    """What a watch keeps between two looks, as JSON."""

    place = UnicodeAttribute(null=True)

    def value(self) -> Any:
        """What was kept; None for a text that is no JSON, which nobody here wrote."""
        # pynamodb's types do not say that an attribute may be absent.
        text: str | None = cast("str | None", self.place)
        try:
            return None if text is None else json.loads(text)
        except ValueError:
            return None


class WatermarkRow(ControlRow):
    """How far a queue is in an archive, and where that began."""

    queue = UnicodeAttribute()
    seq = NumberAttribute()
    began = NumberAttribute(null=True)

    @property
    def mark(self) -> int:
        """The watermark."""
        return int(self.seq)

    @property
    def archived(self) -> Archived:
        """What the archive has of the queue."""
        return Archived(self.mark, _whole(self.began))


def place_of(consumer: str, queue: str, seq: int | None = None) -> tuple[str, str]:
    """The keys of a checkpoint, or of a dead letter; a consumer's name has no `#`, so no two queues share them."""
    return f"{consumer}#{queue}", CHECKPOINT if seq is None else f"dead#{seq + SEQ_OFFSET:020d}"


def queue_of(wire: Wire) -> str:
    """The queue of a checkpoint or a dead letter, by its key: nothing else of a row is sure to be there."""
    return str(wire[tables.CONTROL_PK].get("S", "")).partition("#")[2]


def watermark_place(archive: str, queue: str) -> tuple[str, str]:
    """The keys of a watermark; a consumer's name is not empty, so no checkpoint shares them."""
    return f"#archive#{queue}", archive


def parked_listing(consumer: str) -> str:
    """Under what the parked queues of a consumer are listed."""
    return f"parked#{consumer}"


def dead_listing(consumer: str) -> str:
    """Under what the dead letters of a consumer are listed."""
    return f"dead#{consumer}"


def key_of(pk: str, sk: str) -> Wire:
    """A row's key."""
    return {tables.CONTROL_PK: {"S": pk}, tables.CONTROL_SK: {"S": sk}}


def wire_of(row: ControlRow) -> Wire:
    """A row as requests carry it."""
    return dict(row.serialize())


def row_of(kind: type[Row], wire: Wire) -> Row:
    """A row as answers carry it; attributes of a later version are let be. RowDamaged for what is no such row."""
    attributes = list(kind.get_attributes().values())
    known = {attribute.attr_name for attribute in attributes}
    needed = {attribute.attr_name for attribute in attributes if not attribute.null}
    try:
        row = kind.from_raw_data({name: value for name, value in wire.items() if name in known})
    except (TypeError, ValueError) as error:
        raise RowDamaged(f"the control table holds a row that is not ours: {shown(wire, 200)}: {error}") from error
    present = {name for name, value in wire.items() if "NULL" not in value}
    if needed - present:
        missing = ", ".join(sorted(needed - present))
        raise RowDamaged(f"the control table holds a row without {missing}: {shown(wire, 200)}; who wrote it?")
    return row


def condition_of(condition: Condition) -> dict[str, Any]:
    """A condition as a request carries it."""
    names: dict[str, str] = {}
    values: dict[str, Any] = {}
    text = condition.serialize(names, values)
    request: dict[str, Any] = {
        "ConditionExpression": text,
        "ExpressionAttributeNames": {placeholder: name for name, placeholder in names.items()},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    return request | ({"ExpressionAttributeValues": values} if values else {})


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)


def _millis(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)


def _seconds(millis: float | None) -> float | None:
    return None if millis is None else millis / 1000
