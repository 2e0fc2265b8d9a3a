"""CursorStore and HeadReader on DynamoDB: one row a queue, every change conditional."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from stream_sort.errors import InvalidInput
from stream_sort.model.gap_policy import GapPolicy
from stream_sort.model.gaps import Gap
from stream_sort.model.records import Cursor, Head, Move
from stream_sort.stores.dynamodb import tables
from stream_sort.stores.dynamodb.cursor_listings import DynamoCursorListings, activity_of, waiting_share
from stream_sort.stores.dynamodb.paging import batch_get
from stream_sort.stores.dynamodb.values import int_at, mark_at, millis, number, text_at, time_at

if TYPE_CHECKING:
    from stream_sort.stores.dynamodb.calls import Calls, Reply
    from stream_sort.stores.dynamodb.tables import TableNames
from stream_sort.stores.dynamodb.values import Wire

ROW_EXISTS = "attribute_exists(#queue)"
ROW_IS_ABSENT = "attribute_not_exists(#queue)"
POSITION_IS_OLD = "#position = :old"
# Said with every move and nudge; the index is written only when the hour is another one.
LIST_AS_ACTIVE = "#share = :share, #hour = :hour"
ACTIVE_NAMES = {"#share": tables.SHARE, "#hour": tables.HOUR}


class DynamoCursorStore(DynamoCursorListings):
    """CursorStore on a DynamoDB table."""

    def __init__(self, calls: Calls, names: TableNames) -> None:
        super().__init__(calls, names, self._row)
        self._keys = names.keys

    def get(self, queue: str) -> Cursor | None:
        """See CursorStore."""
        reply = self._calls("get_item", self._table, Key=self._key(queue), ConsistentRead=True)
        return None if reply.item is None else row_of(reply.item, self._keys.queue, self._keys.seq)

    def create(self, cursor: Cursor) -> Move:
        """See CursorStore."""
        row = self._wire(cursor)
        reply = self._calls(
            "put_item",
            self._table,
            Item=row,
            ConditionExpression=ROW_IS_ABSENT,
            ExpressionAttributeNames={"#queue": self._keys.queue},
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
        return Move(not reply.refused, self._row((reply.item or {}) if reply.refused else row))

    def move(self, cursor: Cursor, new: int, now: float) -> Move | None:
        """See CursorStore."""
        none_withdrawn, count = count_is_old(cursor)
        return self._moved(
            self._update(
                cursor.queue,
                f"SET #position = :new, #moved_at = :now, {LIST_AS_ACTIVE}",
                f"{POSITION_IS_OLD} AND {none_withdrawn}",
                {
                    "#position": self._keys.seq,
                    "#moved_at": tables.MOVED_AT,
                    "#withdrawals": tables.WITHDRAWALS,
                    **ACTIVE_NAMES,
                },
                {
                    **count,
                    ":old": number(cursor.position),
                    ":new": number(new),
                    ":now": millis(now),
                    **_active_values(cursor.queue, now),
                },
            )
        )

    def restart(self, cursor: Cursor, first_seq: int) -> Move | None:
        """See CursorStore."""
        start_is_old = "#first_seq = :old_first"
        mark_is_old, mark = _mark_is_old(cursor)
        return self._moved(
            self._update(
                cursor.queue,
                "SET #position = :new, #first_seq = :first",
                f"{POSITION_IS_OLD} AND {start_is_old} AND {mark_is_old}",
                {"#position": self._keys.seq, "#first_seq": tables.FIRST_SEQ, "#since": tables.WAITING_SINCE},
                {
                    **mark,
                    ":old": number(cursor.position),
                    ":old_first": number(cursor.first_seq),
                    ":new": number(first_seq - 1),
                    ":first": number(first_seq),
                },
            )
        )

    def set_waiting(self, cursor: Cursor, since: float | None) -> bool:
        """See CursorStore."""
        if since is None:
            # Out of the index; the time stays, so that no later mark is the same.
            return self._mark(cursor, "REMOVE #waiting, #gap", {"#waiting": tables.WAITING, "#gap": tables.GAP}, {})
        values = {":yes": waiting_share(cursor.queue), ":since": millis(since)}
        return self._mark(cursor, "SET #waiting = :yes, #since = :since", {"#waiting": tables.WAITING}, values)

    def note_gap(self, cursor: Cursor, gap: Gap | None) -> bool:
        """See CursorStore."""
        if gap is None:
            return self._mark(cursor, "REMOVE #gap", {"#gap": tables.GAP}, {})
        return self._mark(cursor, "SET #gap = :gap", {"#gap": tables.GAP}, {":gap": _gap_wire(gap)})

    def set_policy(self, queue: str, policy: GapPolicy | None) -> bool:
        """See CursorStore."""
        names = {"#queue": self._keys.queue, "#policy": tables.POLICY}
        change = "REMOVE #policy" if policy is None else "SET #policy = :policy"
        values = {} if policy is None else {":policy": {"S": str(policy)}}
        return not self._update(queue, change, ROW_EXISTS, names, values).refused

    def nudge(self, queue: str, now: float) -> bool:
        """See CursorStore."""
        names = {"#queue": self._keys.queue, "#nudges": tables.NUDGES, "#at": tables.NUDGED_AT, **ACTIVE_NAMES}
        values = {":one": number(1), ":now": millis(now), **_active_values(queue, now)}
        change = f"SET #at = :now, {LIST_AS_ACTIVE} ADD #nudges :one"
        return not self._update(queue, change, ROW_EXISTS, names, values).refused

    def set_floor(self, queue: str, floor: int) -> Move | None:
        """See CursorStore."""
        is_released, is_higher = "#position >= :floor", "(attribute_not_exists(#floor) OR #floor < :floor)"
        return self._moved(
            self._update(
                queue,
                "SET #floor = :floor",
                f"{is_released} AND {is_higher}",
                {"#position": self._keys.seq, "#floor": tables.FLOOR},
                {":floor": number(floor)},
            )
        )

    def _mark(self, cursor: Cursor, change: str, names: dict[str, str], values: Wire) -> bool:
        """Change a row whose position and last mark are those of `cursor`; False if they are not."""
        mark_is_old, mark = _mark_is_old(cursor)
        names = {"#position": self._keys.seq, "#since": tables.WAITING_SINCE, **names}
        values = {":old": number(cursor.position), **mark, **values}
        return not self._update(cursor.queue, change, f"{POSITION_IS_OLD} AND {mark_is_old}", names, values).refused

    def _update(self, queue: str, change: str, condition: str, names: dict[str, str], values: Wire) -> Reply:
        request: dict[str, Any] = {"ExpressionAttributeValues": values} if values else {}
        return self._calls(
            "update_item",
            self._table,
            Key=self._key(queue),
            UpdateExpression=change,
            ConditionExpression=condition,
            ExpressionAttributeNames=names,
            ReturnValues="ALL_NEW",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
            **request,
        )

    def _moved(self, reply: Reply) -> Move | None:
        if not reply.refused:
            return Move(won=True, cursor=self._row(reply.body["Attributes"]))
        return None if reply.item is None else Move(won=False, cursor=self._row(reply.item))

    def _key(self, queue: str) -> Wire:
        return {self._keys.queue: {"S": queue}}

    def _row(self, wire: Wire) -> Cursor:
        return row_of(wire, self._keys.queue, self._keys.seq)

    def _wire(self, cursor: Cursor) -> Wire:
        wire = {
            **self._key(cursor.queue),
            self._keys.seq: number(cursor.position),
            tables.FIRST_SEQ: number(cursor.first_seq),
        }
        if cursor.policy is not None:
            wire[tables.POLICY] = {"S": str(cursor.policy)}
        if cursor.floor is not None:
            wire[tables.FLOOR] = number(cursor.floor)
        if cursor.withdrawals:
            wire[tables.WITHDRAWALS] = number(cursor.withdrawals)
        if cursor.moved_at is not None:
            wire[tables.MOVED_AT] = millis(cursor.moved_at)
            wire |= activity_of(cursor.queue, cursor.moved_at)
        if cursor.waiting_since is not None:
            wire[tables.WAITING] = waiting_share(cursor.queue)
            wire[tables.WAITING_SINCE] = millis(cursor.waiting_since)
        if cursor.gap is not None:
            wire[tables.GAP] = _gap_wire(cursor.gap)
        return wire


class DynamoHeadReader:
    """HeadReader on both DynamoDB tables, with one BatchGetItem."""

    def __init__(self, calls: Calls, names: TableNames) -> None:
        self._calls = calls
        self._names = names

    def peek(self, queue: str, seq: int) -> Head:
        """See HeadReader."""
        keys = self._names.keys
        slot = {keys.queue: {"S": queue}, keys.seq: number(seq)}
        only_key = {"ProjectionExpression": "#queue", "ExpressionAttributeNames": {"#queue": keys.queue}}
        request: dict[str, Any] = {
            self._names.cursor: {"Keys": [{keys.queue: {"S": queue}}], "ConsistentRead": True},
            self._names.items: {"Keys": [slot], "ConsistentRead": True, **only_key},
        }
        rows: list[Wire] = []
        taken = False
        for found in batch_get(self._calls, request):
            rows += found.get(self._names.cursor, ())
            taken = taken or bool(found.get(self._names.items))
        return Head(row_of(rows[0], keys.queue, keys.seq) if rows else None, taken)


def row_of(wire: Wire, queue_key: str, seq_key: str) -> Cursor:
    """Return the cursor that a row of the table holds; reads what a stream record shows, too."""
    return Cursor(
        queue=text_at(wire, queue_key),
        position=int_at(wire, seq_key),
        first_seq=int_at(wire, tables.FIRST_SEQ) if tables.FIRST_SEQ in wire else 0,
        policy=_policy(wire),
        waiting_since=_mark(wire) if tables.WAITING in wire else None,
        moved_at=_seconds(wire, tables.MOVED_AT),
        nudges=int_at(wire, tables.NUDGES) if tables.NUDGES in wire else 0,
        nudged_at=_seconds(wire, tables.NUDGED_AT),
        last_mark=_mark(wire),
        floor=int_at(wire, tables.FLOOR) if tables.FLOOR in wire else None,
        withdrawals=int_at(wire, tables.WITHDRAWALS) if tables.WITHDRAWALS in wire else 0,
        gap=_gap(wire),
    )


def count_is_old(cursor: Cursor) -> tuple[str, Wire]:
    """Return the condition that nothing was withdrawn since `cursor` was read, and its values."""
    if not cursor.withdrawals:
        return "attribute_not_exists(#withdrawals)", {}
    return "#withdrawals = :withdrawals", {":withdrawals": number(cursor.withdrawals)}


def _gap(wire: Wire) -> Gap | None:
    """Return the gap that was noted on a row; None for what others made of it: then it is measured again."""
    with suppress(LookupError, TypeError, ValueError):
        start, stop, since, withdrawals, *more = (int(number["N"]) for number in wire[tables.GAP]["L"])
        stray, through = more[0] if more else start, more[1] if len(more) > 1 else None
        # Nothing stands behind a gap at its own start: that is written for none.
        return Gap(range(start, stop), since / 1000, withdrawals, None if stray == start else stray, through)
    return None


def _gap_wire(gap: Gap) -> dict[str, Any]:
    start = gap.seqs.start
    numbers = [start, gap.seqs.stop, round(gap.since * 1000), gap.withdrawals]
    if gap.stray is not None or gap.through is not None:
        numbers.append(start if gap.stray is None else gap.stray)
    if gap.through is not None:
        numbers.append(gap.through)
    return {"L": [number(one) for one in numbers]}


def _policy(wire: Wire) -> GapPolicy | None:
    """Return the policy of a row; one that others wrote in words we do not know skips nothing."""
    if tables.POLICY not in wire:
        return None
    try:
        return GapPolicy.parse(text_at(wire, tables.POLICY))
    except InvalidInput:
        return GapPolicy.WAIT


def _mark_is_old(cursor: Cursor) -> tuple[str, Wire]:
    """Return the condition that the last mark is that of `cursor`, and its values."""
    if cursor.last_mark is None:
        return "attribute_not_exists(#since)", {}
    return "#since = :old_since", {":old_since": millis(cursor.last_mark)}


def _active_values(queue: str, now: float) -> Wire:
    active = activity_of(queue, now)
    return {":share": active[tables.SHARE], ":hour": active[tables.HOUR]}


def _seconds(wire: Wire, name: str) -> float | None:
    return time_at(wire, name) if name in wire else None


def _mark(wire: Wire) -> float | None:
    return mark_at(wire, tables.WAITING_SINCE) if tables.WAITING_SINCE in wire else None
