"""ItemStore on DynamoDB: conditional puts, alone or 25 a call, and consistent reads in pages."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from stream_sort.aws.errors import INVALID, ITEM_TOO_LARGE
from stream_sort.errors import InvalidMessage, MessageTooLarge, RowDamaged, StoreError, StreamSortError
from stream_sort.model.message import MAX_MESSAGE_BYTES, RESERVED_PREFIX
from stream_sort.model.records import Cleared, Look, Page, TakenSlots
from stream_sort.model.slots import Entry, Slot
from stream_sort.stores.dynamodb import tables
from stream_sort.stores.dynamodb.paging import pages, read_rows, searched
from stream_sort.stores.dynamodb.values import (
    Wire,
    decode,
    encode,
    int_at,
    is_number,
    is_whole,
    millis,
    number,
    text_at,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.model.message import Message
    from stream_sort.model.records import Arrival, Tombstones
    from stream_sort.stores.dynamodb.calls import Calls
    from stream_sort.stores.dynamodb.deletes import Deletes
    from stream_sort.stores.dynamodb.inserts import Inserts
    from stream_sort.stores.dynamodb.tables import TableNames

SEARCH_PAGE = 1_000


class DynamoItemStore:
    """ItemStore on a DynamoDB table."""

    def __init__(self, calls: Calls, names: TableNames, inserts: Inserts, deletes: Deletes) -> None:
        self._calls = calls
        self._table = names.items
        self._query = partial(calls.body, "query", names.items)
        self._keys = names.keys
        self._inserts = inserts
        self._deletes = deletes

    def put(self, arrival: Arrival, now: float) -> Entry | None:
        """See ItemStore."""
        try:
            there = self._inserts.one(_record(arrival, now))
        except StoreError as error:
            raise _refusal(error, arrival.message) from error
        return None if there is None else self._entry(there)

    def put_many(self, arrivals: Sequence[Arrival], now: float) -> list[Entry | StreamSortError | None]:
        """See ItemStore."""
        answers: list[Entry | StreamSortError | None] = []
        inserted = self._inserts.many([_record(arrival, now) for arrival in arrivals])
        for arrival, answer in zip(arrivals, inserted, strict=True):
            if isinstance(answer, StreamSortError):
                answers.append(_refusal(answer, arrival.message))
            else:
                answers.append(None if answer is None else self._readable(answer))
        return answers

    def skip(self, tombstones: Tombstones, now: float) -> tuple[int, ...]:
        """See ItemStore."""
        mark = {tables.SKIPPED: {"S": tombstones.reason}, tables.ARRIVED_AT: millis(now), **_proof(tombstones.seen)}
        answers = self._inserts.many([{**self._slot(tombstones.queue, seq), **mark} for seq in tombstones.seqs])
        skipped: list[int] = []
        for seq, there in zip(tombstones.seqs, answers, strict=True):
            if isinstance(there, StreamSortError):
                raise there
            # The very tombstone is our own: a reply was lost, and it was put again.
            if there is None or there.items() >= mark.items():
                skipped.append(seq)
        return tuple(skipped)

    def keep_late(self, message: Message, now: float) -> Entry | None:  # noqa: ARG002  # the tombstone has the time
        """See ItemStore."""
        own = {
            name: value for name, value in message.document.items() if name not in (self._keys.queue, self._keys.seq)
        }
        wire, types = encode(own)
        is_tombstone, none_kept = "attribute_exists(#skipped)", "attribute_not_exists(#late)"
        request: dict[str, Any] = {
            "Key": self._slot(message.queue, message.seq),
            "UpdateExpression": "SET #late = :late, #types = :types",
            "ConditionExpression": f"{is_tombstone} AND {none_kept}",
            "ExpressionAttributeNames": {"#skipped": tables.SKIPPED, "#late": tables.LATE, "#types": tables.LATE_TYPES},
            "ExpressionAttributeValues": {":late": {"M": wire}, ":types": {"S": types or ""}},
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        try:
            reply = self._calls("update_item", self._table, **request)
        except StoreError as error:
            raise _refusal(error, message) from error
        slot = reply.item if reply.refused else reply.body["Attributes"]
        return None if slot is None else self._entry(slot)

    def look(self, queue: str, after: int, limit: int) -> Look:
        """See ItemStore."""
        names = {"#seq": self._keys.seq, "#seen": tables.SEEN}
        request = self._request(queue, " AND #seq > :after", names, {":after": after})
        found, more = self._page(request | {"Limit": limit, "ProjectionExpression": "#seq, #seen"})
        # The table has our keys, or it would have refused this.
        self._inserts.keys_fit = True
        seqs = (int_at(wire, self._keys.seq) for wire in found)
        proofs = [wire for wire in found if is_number(wire, tables.SEEN)]
        return Look(
            tuple(range(seq, seq + 1) for seq in seqs), more, tuple(int_at(wire, tables.SEEN) for wire in proofs)
        )

    def page(self, queue: str, after: int, through: int, limit: int) -> Page:
        """See ItemStore."""
        bounds = {":first": after + 1, ":last": through}
        request = self._request(queue, " AND #seq BETWEEN :first AND :last", {"#seq": self._keys.seq}, bounds)
        found, more = self._page(request | {"Limit": limit})
        slots: list[Slot] = []
        for wire in found:
            try:
                slots.append(self._read(wire))
            except RowDamaged:
                if not slots:
                    raise
                return Page(tuple(slots), more=True)
        return Page(tuple(slots), more)

    def holding(self, queue: str, seq: int) -> Slot | None:
        """See ItemStore."""
        request = self._request(queue, " AND #seq <= :seq", {"#seq": self._keys.seq}, {":seq": seq})
        found, _ = self._page(request | {"Limit": 1, "ScanIndexForward": False})
        return self._read(found[0]) if found and int_at(found[0], self._keys.seq) == seq else None

    def arrivals(self, queue: str, after: int, limit: int) -> Page:
        """See ItemStore."""
        names = {"#seq": self._keys.seq, "#at": tables.ARRIVED_AT, "#skipped": tables.SKIPPED}
        request = self._request(queue, " AND #seq > :after", names, {":after": after})
        found, more = self._page(request | {"Limit": limit, "ProjectionExpression": "#queue, #seq, #at, #skipped"})
        return Page(tuple(self._bare(wire) for wire in found), more)

    def arrivals_below(self, queue: str, before: int, limit: int) -> Page:
        """See ItemStore."""
        names = {"#seq": self._keys.seq, "#at": tables.ARRIVED_AT, "#skipped": tables.SKIPPED, "#seen": tables.SEEN}
        request = self._request(queue, " AND #seq < :before", names, {":before": before})
        shown = {"ScanIndexForward": False, "ProjectionExpression": "#queue, #seq, #at, #skipped, #seen"}
        found, more = self._page(request | shown | {"Limit": limit})
        seen = [int_at(wire, tables.SEEN) if is_number(wire, tables.SEEN) else None for wire in found]
        slots = (replace(self._bare(wire), seen=one) for wire, one in zip(found, seen, strict=True))
        return Page(tuple(slots), more)

    def taken(self, slots: Sequence[tuple[str, int]]) -> TakenSlots:
        """See ItemStore."""
        names = {"#queue": self._keys.queue, "#seq": self._keys.seq}
        only_keys = {"ConsistentRead": True, "ProjectionExpression": "#queue, #seq", "ExpressionAttributeNames": names}
        found = read_rows(self._calls, self._table, [self._slot(*slot) for slot in dict.fromkeys(slots)], **only_keys)
        taken = {(text_at(row, self._keys.queue), int_at(row, self._keys.seq)) for row in found.rows}
        if found.error is None:
            return TakenSlots(taken)
        unread = (text_at(key, self._keys.queue) for key in found.unread)
        return TakenSlots(taken, dict.fromkeys(unread, found.error))

    def highest(self, queue: str) -> int | None:
        """See ItemStore."""
        request = self._request(queue, "", {"#seq": self._keys.seq}, {})
        found, _ = self._page(request | {"Limit": 1, "ScanIndexForward": False, "ProjectionExpression": "#seq"})
        return int_at(found[0], self._keys.seq) if found else None

    def tombstones(self, queue: str, limit: int) -> Page:
        """See ItemStore."""
        found: list[Slot] = []
        more = True
        request = self._request(queue, "", {"#skipped": tables.SKIPPED}, {})
        request |= {"ScanIndexForward": False, "FilterExpression": "attribute_exists(#skipped)"}
        for body in searched(self._query, limit, SEARCH_PAGE, **request):
            found += map(self._read, self._slots(body["Items"]))
            more = "LastEvaluatedKey" in body
        return Page(tuple(found), more)

    def delete(self, queue: str, after: int, through: int, limit: int) -> int:
        """See ItemStore."""
        bounds = {":first": after + 1, ":last": through}
        request = self._request(queue, " AND #seq BETWEEN :first AND :last", {"#seq": self._keys.seq}, bounds)
        found, _ = self._page(request | {"Limit": limit, "ProjectionExpression": "#queue, #seq"})
        self._deletes.many(found)
        return len(found)

    def take_back(self, queue: str, seq: int) -> bool:
        """See ItemStore."""
        return self._deletes.seen_after(self._slot(queue, seq), seq)

    def clear(self, queue: str, after: int, through: int, limit: int) -> Cleared:
        """See ItemStore."""
        bounds = {":first": after + 1, ":last": through}
        names = {"#seq": self._keys.seq, "#skipped": tables.SKIPPED}
        request = self._request(queue, " AND #seq BETWEEN :first AND :last", names, bounds)
        found, more = self._page(request | {"Limit": limit, "ProjectionExpression": "#queue, #seq, #skipped"})
        seqs = [int_at(wire, self._keys.seq) for wire in found]
        tombstones = [seq for seq, wire in zip(seqs, found, strict=True) if tables.SKIPPED in wire]
        # A message has nothing beside it. A tombstone may get a late message at any time, until it is gone.
        self._deletes.many([self._slot(queue, seq) for seq in set(seqs).difference(tombstones)])
        gone = self._deletes.without_late([self._slot(queue, seq) for seq in tombstones])
        kept = tuple(seq for seq, deleted in zip(tombstones, gone, strict=True) if not deleted)
        return Cleared(len(seqs) - len(kept), kept, seqs[-1] if more else through)

    def _page(self, request: dict[str, Any]) -> tuple[list[Wire], bool]:
        """Read one page that is empty only at the end: DynamoDB may send an empty one and still go on."""
        found: list[Wire] = []
        more = False
        for body in pages(self._query, **request):
            found, more = self._slots(body["Items"]), "LastEvaluatedKey" in body
            if found:
                break
        return found, more

    def _slots(self, found: list[Wire]) -> list[Wire]:
        """Return those that are in a slot: what others wrote with a seq such as 1.5 is none, and holds up nobody."""
        return [wire for wire in found if is_whole(wire, self._keys.seq)]

    def _request(self, queue: str, seqs: str, names: dict[str, str], bounds: dict[str, int]) -> dict[str, Any]:
        return {
            "ConsistentRead": True,
            "KeyConditionExpression": "#queue = :queue" + seqs,
            "ExpressionAttributeNames": {"#queue": self._keys.queue, **names},
            "ExpressionAttributeValues": {
                ":queue": {"S": queue},
                **{name: number(value) for name, value in bounds.items()},
            },
        }

    def _slot(self, queue: str, seq: int) -> Wire:
        return {self._keys.queue: {"S": queue}, self._keys.seq: number(seq)}

    def _readable(self, wire: Wire) -> Entry | StreamSortError:
        """Return the entry, or why it cannot be read: an answer for its own slot only."""
        try:
            return self._entry(wire)
        except StoreError as error:
            return error

    def _read(self, wire: Wire) -> Slot:
        return Slot(text_at(wire, self._keys.queue), (self._entry(wire),))

    def _bare(self, wire: Wire) -> Slot:
        """Return a slot without its documents."""
        return Slot(text_at(wire, self._keys.queue), (self._arrival(wire),))

    def _entry(self, wire: Wire) -> Entry:
        key = {name: wire[name] for name in (self._keys.queue, self._keys.seq)}
        own = {name: value for name, value in wire.items() if not name.startswith(RESERVED_PREFIX)}
        late = None
        if tables.LATE in wire:
            late = decode({**key, **wire[tables.LATE].get("M", {})}, _text(wire, tables.LATE_TYPES))
        document = {} if tables.SKIPPED in wire else decode(own, _text(wire, tables.TYPES))
        return replace(self._arrival(wire), document=document, late=late)

    def _arrival(self, wire: Wire) -> Entry:
        """Return an entry without its document."""
        # What others made of it tells no time.
        arrived = is_number(wire, tables.ARRIVED_AT)
        return Entry(
            seq=int_at(wire, self._keys.seq),
            arrived_at=int_at(wire, tables.ARRIVED_AT) / 1000 if arrived else None,
            skipped=_text(wire, tables.SKIPPED),
        )


def _record(arrival: Arrival, now: float) -> Wire:
    wire, types = encode(arrival.message.document)
    wire |= {tables.ARRIVED_AT: millis(now), **_proof(arrival.seen)}
    if types is not None:
        wire[tables.TYPES] = {"S": types}
    return wire


def _proof(seen: int | None) -> Wire:
    """Note that the writer saw a cursor row, should it ever be lost."""
    return {} if seen is None else {tables.SEEN: number(seen)}


def _refusal(error: StreamSortError, message: Message) -> StreamSortError:
    """Return the error of one message, if that is what the table refused; otherwise the error itself."""
    if not isinstance(error, StoreError) or error.code != INVALID:
        return error
    if ITEM_TOO_LARGE.match(error.said):
        return MessageTooLarge(None, MAX_MESSAGE_BYTES, queue=message.queue, seq=message.seq)
    return InvalidMessage(str(error), queue=message.queue, seq=message.seq)


def _text(wire: Wire, name: str) -> str | None:
    return wire[name].get("S", "") if name in wire else None
