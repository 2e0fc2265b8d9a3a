"""WithdrawalStore on DynamoDB: one transaction over both tables, and a partition of its own in the items table."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from stream_sort.aws.errors import REFUSED
from stream_sort.errors import AccessDenied, StoreError
from stream_sort.model.message import RESERVED_PREFIX
from stream_sort.model.withdrawal import Withdrawal, partition_of
from stream_sort.stores.dynamodb import tables
from stream_sort.stores.dynamodb.cursors import count_is_old
from stream_sort.stores.dynamodb.paging import searched
from stream_sort.stores.dynamodb.values import Wire, decode, int_at, millis, number, text_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.model.records import Cursor
    from stream_sort.stores.dynamodb.calls import Calls, Reply
    from stream_sort.stores.dynamodb.tables import TableNames

IS_THERE = "attribute_exists(#queue)"
IS_ABSENT = "attribute_not_exists(#queue)"
NO_TOMBSTONE = "attribute_not_exists(#skipped)"


class DynamoWithdrawalStore:
    """WithdrawalStore on the items and the cursor table."""

    def __init__(self, calls: Calls, names: TableNames) -> None:
        self._calls = calls
        self._names = names
        self._keys = names.keys

    def withdraw(self, cursor: Cursor, wanted: Withdrawal) -> Withdrawal | None:
        """See WithdrawalStore."""
        key = self._key(wanted.queue, wanted.seq)
        slot = self._calls("get_item", self._names.items, Key=key, ConsistentRead=True).item
        if slot is None or tables.SKIPPED in slot:
            return None
        kept = self._record(wanted, slot)
        # Before anything is done: a message that cannot be read is mended where it stands, or left there.
        done = self._withdrawal(wanted.queue, kept)
        actions = [self._count(cursor, wanted), self._no_predecessor(wanted), self._empty(key, slot), self._keep(kept)]
        return None if self._transact(actions).refused else done

    def page(self, queue: str, after: int, limit: int) -> Sequence[Withdrawal]:
        """See WithdrawalStore."""
        found: list[Wire] = []
        request = self._request(queue, " AND #number > :after", {":after": number(after)})
        request["ExpressionAttributeNames"] |= {"#number": self._keys.seq}
        for body in searched(self._query, limit, limit, **request):
            found += body["Items"]
        return [self._withdrawal(queue, wire) for wire in found]

    def last(self, queue: str) -> int:
        """See WithdrawalStore."""
        request = self._request(queue, "", {}) | {"Limit": 1, "ScanIndexForward": False}
        found = self._query(**request)["Items"]
        return int_at(found[0], self._keys.seq) if found else 0

    def _query(self, **request: Any) -> dict[str, Any]:
        return self._calls.body("query", self._names.items, **request)

    def _transact(self, actions: list[dict[str, Any]]) -> Reply:
        where = f"{self._names.cursor} and {self._names.items}"
        try:
            # The same token in every try: a try whose reply was lost is not done twice.
            token = str(uuid.uuid4())
            reply = self._calls.across("transact_write_items", where, TransactItems=actions, ClientRequestToken=token)
        except AccessDenied as denied:
            raise AccessDenied(
                f"not allowed to withdraw: the role needs dynamodb:PutItem, DeleteItem and ConditionCheckItem on table "
                f"{self._names.items!r} and UpdateItem on table {self._names.cursor!r}. AWS says: {denied.__cause__}",
                table=where,
                operation="TransactWriteItems",
            ) from denied.__cause__
        codes = [reason.get("Code", "None") for reason in reply.body.get("CancellationReasons", ())]
        if reply.refused and codes and REFUSED not in codes:
            raise StoreError(f"TransactWriteItems on tables {where} was cancelled: {reply.body}", table=where)
        return reply

    def _count(self, cursor: Cursor, wanted: Withdrawal) -> dict[str, Any]:
        """Count the withdrawal on the row: whoever knew the queue before it has to look again."""
        none_since, count = count_is_old(cursor)
        is_unreleased = "#position < :before"
        return {
            "Update": {
                "TableName": self._names.cursor,
                "Key": {self._keys.queue: {"S": wanted.queue}},
                "UpdateExpression": "SET #withdrawals = :number",
                "ConditionExpression": f"{is_unreleased} AND {none_since}",
                "ExpressionAttributeNames": {"#position": self._keys.seq, "#withdrawals": tables.WITHDRAWALS},
                "ExpressionAttributeValues": {
                    **count,
                    ":before": number(wanted.seq - 1),
                    ":number": number(wanted.number),
                },
            }
        }

    def _no_predecessor(self, wanted: Withdrawal) -> dict[str, Any]:
        return {
            "ConditionCheck": {
                "TableName": self._names.items,
                "Key": self._key(wanted.queue, wanted.seq - 1),
                "ConditionExpression": IS_ABSENT,
                "ExpressionAttributeNames": {"#queue": self._keys.queue},
            }
        }

    def _empty(self, key: Wire, slot: Wire) -> dict[str, Any]:
        """Empty the slot, if it still holds what was read: a message that arrived at that time."""
        names = {"#queue": self._keys.queue, "#skipped": tables.SKIPPED, "#at": tables.ARRIVED_AT}
        request: dict[str, Any] = {"TableName": self._names.items, "Key": key, "ExpressionAttributeNames": names}
        if tables.ARRIVED_AT in slot:
            same_message = "#at = :at"
            request["ExpressionAttributeValues"] = {":at": slot[tables.ARRIVED_AT]}
        else:
            same_message = "attribute_not_exists(#at)"
        return {"Delete": request | {"ConditionExpression": f"{IS_THERE} AND {NO_TOMBSTONE} AND {same_message}"}}

    def _keep(self, record: Wire) -> dict[str, Any]:
        return {
            "Put": {
                "TableName": self._names.items,
                "Item": record,
                "ConditionExpression": IS_ABSENT,
                "ExpressionAttributeNames": {"#queue": self._keys.queue},
            }
        }

    def _record(self, wanted: Withdrawal, slot: Wire) -> Wire:
        """Return what is kept: the slot without its keys. It fits wherever the slot did; see MAX_MESSAGE_BYTES."""
        return {
            **self._key(partition_of(wanted.queue), wanted.number),
            tables.WITHDRAWN_SEQ: number(wanted.seq),
            tables.WITHDRAWN_AT: millis(wanted.at),
            tables.REASON: {"S": wanted.reason},
            tables.WITHDRAWN: {
                "M": {name: value for name, value in slot.items() if name not in (self._keys.queue, self._keys.seq)}
            },
        }

    def _withdrawal(self, queue: str, wire: Wire) -> Withdrawal:
        slot: Wire = wire[tables.WITHDRAWN]["M"]
        seq = int_at(wire, tables.WITHDRAWN_SEQ)
        own = {name: value for name, value in slot.items() if not name.startswith(RESERVED_PREFIX)}
        types = text_at(slot, tables.TYPES) if tables.TYPES in slot else None
        return Withdrawal(
            queue=queue,
            number=int_at(wire, self._keys.seq),
            seq=seq,
            reason=text_at(wire, tables.REASON),
            at=int_at(wire, tables.WITHDRAWN_AT) / 1000,
            message=decode({**self._key(queue, seq), **own}, types),
        )

    def _request(self, queue: str, numbers: str, values: Wire) -> dict[str, Any]:
        return {
            "ConsistentRead": True,
            "KeyConditionExpression": "#queue = :queue" + numbers,
            "ExpressionAttributeNames": {"#queue": self._keys.queue},
            "ExpressionAttributeValues": {":queue": {"S": partition_of(queue)}, **values},
        }

    def _key(self, partition: str, seq: int) -> Wire:
        return {self._keys.queue: {"S": partition}, self._keys.seq: number(seq)}
