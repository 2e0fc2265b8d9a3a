"""Tries refused events again: stores what they carry, as `enqueue` would, or wakes what they should have woken."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stream_sort.aws_lambda.parcels import RecordParcel, parcels_of
from stream_sort.aws_lambda.receipts import put
from stream_sort.aws_lambda.refused_events import kinesis_event
from stream_sort.aws_lambda.shapes import Shape
from stream_sort.cli.loading import CONFLICT
from stream_sort.cli.stream_places import PlaceUnreadable, kinesis_records, table_queues
from stream_sort.errors import InvalidInput, StreamSortError
from stream_sort.insight.wording import counted
from stream_sort.model.outcomes import Status
from stream_sort.model.withdrawal import is_kept_aside

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stream_sort.aws_lambda.receipts import Receipts
    from stream_sort.aws_lambda.refused_events import RefusedEvent, StreamPlace
    from stream_sort.cli.connection import Connection
    from stream_sort.cli.refused import Kept, RefusedSource

STORED, WOKEN, LEFT = "stored", "woken", "left"
# What is put in one go: bodies are in memory.
MOST_EVENTS, MOST_BYTES = 100, 4_000_000
NO_PLACE = "the event names no place in a stream"
DROPPED = "the stream has dropped it: send it again from its source, then discard this"
MISSED = "the stream has dropped it; an audit with --repair finds what advance missed, then discard this"


@dataclass(frozen=True, slots=True)
class RefusedTry:
    """What came of one event. Of what is left, `error` says why; its other messages may be stored."""

    id: str
    source: str
    outcome: str
    messages: int = 0
    accepted: int = 0
    duplicates: int = 0
    late: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Redrive:
    """Redrives events on the tables of a connection. At least once: what is stored already is a duplicate.

    An event is done when all its messages are stored, accepted now or before, or late beside their tombstone. A
    conflict is stored nowhere: its event is left.
    """

    connection: Connection
    clients: dict[str, Any] = field(default_factory=dict)

    def try_all(self, found: Iterable[tuple[RefusedSource, Kept]]) -> Iterator[list[RefusedTry]]:
        """Try events, some at a time; what is done is deleted from its source before the next ones are tried.

        One that fails, or that cannot be deleted, is left with its reason, and the others go on.
        """
        for portion in _portions(found):
            tried = self._try([kept for _, kept in portion])
            done = {one.id for one in tried if one.outcome != LEFT}
            still_there: dict[str, str] = {}
            for source in {id(source): source for source, _ in portion}.values():
                still_there |= source.delete(kept for of, kept in portion if of is source and kept.id in done)
            yield [_not_deleted(one, still_there[one.id]) if one.id in still_there else one for one in tried]

    def check(self, kept: Kept) -> RefusedTry:
        """Say what is known against storing an event; nothing is changed."""
        event = self._resolved(kept.event)
        if event.place is not None:
            return RefusedTry(kept.id, kept.source, WOKEN)
        problem = event.problem(self.connection.sorter.options.keys)
        return RefusedTry(kept.id, kept.source, LEFT if problem else STORED, len(event.messages), error=problem)

    def _try(self, some: Sequence[Kept]) -> list[RefusedTry]:
        events = [self._resolved(kept.event) for kept in some]
        receipts = put(self.connection.sorter, [message for event in events for message in event.messages])
        tried: list[RefusedTry] = []
        start = 0
        for kept, event in zip(some, events, strict=True):
            span = range(start, start + len(event.messages))
            start = span.stop
            if event.place is not None:
                tried.append(self._wake(kept, event.place))
            else:
                tried.append(_outcome(kept, event, receipts, span))
        return tried

    def _resolved(self, event: RefusedEvent) -> RefusedEvent:
        """Return an event with the records that its place in Kinesis stands for; others as they are."""
        place = event.place
        if place is None:
            return event
        if not (place.stream and place.shard and place.first.isdecimal() and place.last.isdecimal()):
            return _without_records(event, NO_PLACE)
        if not place.is_kinesis:
            return event
        try:
            records = kinesis_records(self._client("kinesis"), place)
        except PlaceUnreadable as error:
            return _without_records(event, str(error))
        if records is None:
            return _without_records(event, DROPPED)
        again = kinesis_event(place.stream, place.shard, records)
        parcels = tuple(parcels_of(again, Shape.KINESIS, self.connection.sorter.options.keys))
        return replace(event, parcels=parcels, place=None)

    def _wake(self, kept: Kept, place: StreamPlace) -> RefusedTry:
        """Do what the function should have done with records of a table's stream."""
        settings, sorter = self.connection.settings, self.connection.sorter
        is_items = place.stream.partition(":table/")[2].partition("/")[0] == settings.items_table
        try:
            queues = table_queues(self._client("dynamodbstreams"), place, settings.queue_key)
        except PlaceUnreadable as error:
            return RefusedTry(kept.id, kept.source, LEFT, error=str(error))
        if queues is None:
            # Those of the cursor table were wakes of queues that have a row: the sweep has woken whoever lagged.
            return (
                RefusedTry(kept.id, kept.source, LEFT, error=MISSED)
                if is_items
                else RefusedTry(kept.id, kept.source, WOKEN)
            )
        failed: list[str] = []
        # What was withdrawn is kept in the items table, too, and is no queue.
        for queue in (queue for queue in queues if not is_kept_aside(queue)):
            try:
                sorter.advance(queue) if is_items else sorter.nudge(queue)
            except StreamSortError as error:
                failed.append(f"queue {queue!r}: {error}")
        if not failed:
            return RefusedTry(kept.id, kept.source, WOKEN)
        more = f"; and {counted(len(failed) - 1, 'more queue')}" if len(failed) > 1 else ""
        return RefusedTry(kept.id, kept.source, LEFT, error=failed[0] + more)

    def _client(self, service: str) -> Any:
        if service not in self.clients:
            self.clients[service] = self.connection.client(service)
        return self.clients[service]


def _without_records(event: RefusedEvent, why: str) -> RefusedEvent:
    """Return an event whose place could not be read: it is left, with the reason."""
    return replace(event, parcels=(RecordParcel("place", error=InvalidInput(why)),), place=None)


def _outcome(kept: Kept, event: RefusedEvent, receipts: Receipts, span: range) -> RefusedTry:
    outcomes = [receipts.outcome(index) for index in span]
    errors = [str(parcel.error) for parcel in event.parcels if parcel.error is not None]
    errors += [str(error) for error in map(receipts.failure, span) if error is not None]
    errors += [CONFLICT for one in outcomes if one is Status.CONFLICT]
    return RefusedTry(
        kept.id,
        kept.source,
        LEFT if errors else STORED,
        len(span),
        accepted=outcomes.count(Status.ACCEPTED),
        duplicates=outcomes.count(Status.DUPLICATE),
        late=outcomes.count(Status.LATE),
        error=errors[0] if errors else "",
    )


def _not_deleted(one: RefusedTry, why: str) -> RefusedTry:
    """Return what came of an event that is done, and is still where it was kept."""
    done, again = (
        ("all of it is stored", "finds duplicates") if one.outcome == STORED else ("it is done", "does no harm")
    )
    error = f"{done}, but it could not be deleted ({why}): to redrive it again {again}"
    return replace(one, outcome=LEFT, error=error)


def _portions(found: Iterable[tuple[RefusedSource, Kept]]) -> Iterator[list[tuple[RefusedSource, Kept]]]:
    """Take some at a time; those that came before an error, too."""
    portion: list[tuple[RefusedSource, Kept]] = []
    size = 0
    try:
        for pair in found:
            portion.append(pair)
            size += len(pair[1].body)
            if len(portion) == MOST_EVENTS or size > MOST_BYTES:
                yield portion
                portion, size = [], 0
    except Exception:
        yield portion
        raise
    if portion:
        yield portion
