"""ControlStore on DynamoDB: every change is one conditional write, or one transaction with a handler's effects."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from stream_sort.errors import EffectRefused, RowDamaged, SettingsError
from stream_sort.model.consumption import (
    Checkpoint,
    Checkpoints,
    Commit,
    Consumers,
    DeadLetterPage,
    ParkedPage,
    Standing,
)
from stream_sort.model.table_names import check_table_name
from stream_sort.stores.dynamodb import control_rows as rows
from stream_sort.stores.dynamodb import tables
from stream_sort.stores.dynamodb.cursors import row_of as cursor_of
from stream_sort.stores.dynamodb.transactions import transact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from stream_sort.model.batch import Effect
    from stream_sort.model.consumption import DeadLetter, Subscription
    from stream_sort.stores.dynamodb.calls import Calls, Reply
    from stream_sort.stores.dynamodb.control_rows import ControlRow
    from stream_sort.stores.dynamodb.tables import TableNames
    from stream_sort.stores.dynamodb.values import Wire

MAX_KEYS = 100

Read = TypeVar("Read")


class DynamoControlStore:
    """ControlStore on a DynamoDB table."""

    def __init__(self, calls: Calls, names: TableNames, table: str) -> None:
        self._calls = calls
        self._names = names
        self._table = check_table_name(table)
        if table in {names.items, names.cursor}:
            raise SettingsError(f"control_table is {table!r}, as another table is; it must have a name of its own")

    def create_table(self) -> None:
        """See ControlStore."""
        tables.create_table(self._calls, tables.control_table(self._table))

    def standing(self, consumer: str, queue: str, slot: int | None = None) -> Standing:
        """See ControlStore."""
        keys = self._names.keys
        cursor_key = {keys.queue: {"S": queue}}
        request: dict[str, dict[str, Any]] = {
            self._table: {"Keys": [rows.key_of(*rows.place_of(consumer, queue))]},
            self._names.cursor: {"Keys": [cursor_key]},
        }
        if slot is not None:
            only_key = {"ProjectionExpression": "#seq", "ExpressionAttributeNames": {"#seq": keys.seq}}
            request[self._names.items] = {"Keys": [{**cursor_key, keys.seq: {"N": str(slot)}}], **only_key}
        found = self._batch_get(request)
        checkpoint = found[self._table]
        cursor = found[self._names.cursor]
        return Standing(
            _checkpoint(checkpoint[0]) if checkpoint else None,
            cursor_of(cursor[0], keys.queue, keys.seq) if cursor else None,
            None if slot is None else bool(found[self._names.items]),
        )

    def create(self, checkpoint: Checkpoint, starting: Subscription | None = None) -> Commit:
        """See ControlStore."""
        row, row_is_absent = rows.CheckpointRow.of(checkpoint), rows.CheckpointRow.pk.does_not_exist()
        if starting is None:
            return _committed(self._put(row, row_is_absent), checkpoint)
        key = rows.key_of(rows.CONSUMERS, starting.name)
        is_starting = rows.condition_of(rows.ConsumerRow.ready == False)  # noqa: E712  # pynamodb's way to say it
        check = {"ConditionCheck": {"TableName": self._table, "Key": key, **is_starting}}
        try:
            actions = [self._put_action(row, row_is_absent), check]
            return _committed(transact(self._calls, self._table, actions, checkpoint.queue, ()), checkpoint)
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
        """See ControlStore."""
        row = rows.CheckpointRow.of(new)
        version_is_old = rows.CheckpointRow.version == old.version
        if not effects and dead is None:
            return _committed(self._put(row, version_is_old), new)
        actions = [self._put_action(row, version_is_old)]
        if dead is not None:
            actions.append({"Put": {"TableName": self._table, "Item": rows.wire_of(_letter_row(new.consumer, dead))}})
        return _committed(transact(self._calls, self._table, actions, new.queue, effects), new)

    def checkpoints(self, consumer: str, queues: Sequence[str]) -> dict[str, Checkpoint]:
        """See ControlStore."""
        return self.readable_checkpoints(consumer, queues).whole()

    def readable_checkpoints(self, consumer: str, queues: Sequence[str]) -> Checkpoints:
        """See ControlStore."""
        found = Checkpoints({})
        for start in range(0, len(queues), MAX_KEYS):
            keys = [rows.key_of(*rows.place_of(consumer, queue)) for queue in queues[start : start + MAX_KEYS]]
            for wire in self._batch_get({self._table: {"Keys": keys}})[self._table]:
                _take(wire, found)
        return found

    def parked(self, consumer: str, before: float | None = None, start: Any = None) -> ParkedPage:
        """See ControlStore."""
        latest = rows.NEVER if before is None else round(before * 1000)
        body = self._listing(rows.parked_listing(consumer), latest, start)
        found = Checkpoints({})
        for wire in body["Items"]:
            _take(wire, found)
        parked = tuple(row.parked for row in found.rows.values() if row.parked is not None)
        return ParkedPage(parked, body.get("LastEvaluatedKey"), found.damaged)

    def dead_letters(self, consumer: str, start: Any = None) -> DeadLetterPage:
        """See ControlStore."""
        body = self._listing(rows.dead_listing(consumer), rows.NEVER, start)
        return DeadLetterPage(tuple(_readable(_letter, body["Items"])), body.get("LastEvaluatedKey"))

    def dead_letters_of(self, consumer: str, queue: str, *, discarded: bool = False) -> list[DeadLetter]:
        """See ControlStore."""
        pk, _ = rows.place_of(consumer, queue)
        letters = map(_letter, self._query(pk, "dead#"))
        return [letter for letter in letters if (letter.discarded is not None) is discarded]

    def settle(self, consumer: str, letter: DeadLetter, new: DeadLetter | None, effects: Sequence[Effect] = ()) -> bool:
        """See ControlStore."""
        kind = rows.DeadLetterRow
        attempts_are_old, is_kept = kind.attempts == letter.attempts, kind.discarded.does_not_exist()
        run_is_old = kind.run.does_not_exist() if letter.run is None else kind.run == letter.run
        is_as_read = attempts_are_old & run_is_old & is_kept
        if new is not None:
            action = self._put_action(_letter_row(consumer, new), is_as_read)
        else:
            key = rows.key_of(*rows.place_of(consumer, letter.queue, letter.seq))
            action = {"Delete": {"TableName": self._table, "Key": key, **rows.condition_of(is_as_read)}}
        return not transact(self._calls, self._table, [action], letter.queue, effects).refused

    def register(self, subscription: Subscription) -> Subscription:
        """See ControlStore."""
        there = self.introduce(subscription)
        if not there.is_retired:
            return there
        self._update_consumer(there.name, "REMOVE #retired", "attribute_exists(#retired)")
        return replace(there, retired_at=None)

    def introduce(self, subscription: Subscription) -> Subscription:
        """See ControlStore."""
        wire = self._get(rows.CONSUMERS, subscription.name)
        if wire is None:
            reply = self._put(rows.ConsumerRow.of(subscription), rows.ConsumerRow.pk.does_not_exist())
            wire = reply.item if reply.refused else None
        return subscription if wire is None else rows.row_of(rows.ConsumerRow, wire).subscription()

    def make_ready(self, subscription: Subscription) -> None:
        """See ControlStore."""
        self._update_consumer(subscription.name, "SET #ready = :value", "attribute_exists(#pk)", {"BOOL": True})

    def consumers(self, *, retired: bool = False) -> list[Subscription]:
        """See ControlStore."""
        found = self.readable_consumers()
        for error in found.damaged.values():
            raise error
        return [one for one in found.rows.values() if one.is_retired is retired]

    def readable_consumers(self) -> Consumers:
        """See ControlStore."""
        found = Consumers({})
        for wire in self._query(rows.CONSUMERS, ""):
            name = str(wire[tables.CONTROL_SK].get("S", ""))
            try:
                found.rows[name] = rows.row_of(rows.ConsumerRow, wire).subscription()
            except RowDamaged as error:
                found.damaged[name] = error
        return found

    def bookmark(self) -> Any:
        """See ControlStore."""
        wire = self._get(rows.SWEEP, rows.BOOKMARK)
        return None if wire is None else rows.row_of(rows.BookmarkRow, wire).value()

    def set_bookmark(self, place: Any) -> None:
        """See ControlStore."""
        text = None if place is None else json.dumps(place)
        row = rows.BookmarkRow(rows.SWEEP, rows.BOOKMARK, place=text)
        self._calls("put_item", self._table, TableName=self._table, Item=rows.wire_of(row))

    def retire(self, consumer: str, now: float) -> None:
        """See ControlStore."""
        row_is_there, is_not_retired = "attribute_exists(#pk)", "attribute_not_exists(#retired)"
        condition = f"{row_is_there} AND {is_not_retired}"
        self._update_consumer(consumer, "SET #retired = :value", condition, {"N": str(round(now * 1000))})

    def _update_consumer(self, name: str, update: str, condition: str, value: Any = None) -> None:
        """Change one attribute of a consumer on a condition that demands its row: an update would make half of one."""
        kind, text = rows.ConsumerRow, update + condition
        aliases = {"#pk": kind.pk.attr_name, "#ready": kind.ready.attr_name, "#retired": kind.retired_at.attr_name}
        values: dict[str, Any] = {} if value is None else {"ExpressionAttributeValues": {":value": value}}
        self._calls(
            "update_item",
            self._table,
            TableName=self._table,
            Key=rows.key_of(rows.CONSUMERS, name),
            UpdateExpression=update,
            ConditionExpression=condition,
            ExpressionAttributeNames={alias: name for alias, name in aliases.items() if alias in text},
            **values,
        )

    def _get(self, pk: str, sk: str) -> Wire | None:
        key = rows.key_of(pk, sk)
        return self._calls("get_item", self._table, TableName=self._table, Key=key, ConsistentRead=True).item

    def _put_action(self, row: ControlRow, condition: Any) -> dict[str, Any]:
        return {"Put": {"TableName": self._table, "Item": rows.wire_of(row), **rows.condition_of(condition)}}

    def _put(self, row: ControlRow, condition: Any) -> Reply:
        return self._calls("put_item", self._table, **self._put_action(row, condition)["Put"])

    def _batch_get(self, request: dict[str, dict[str, Any]]) -> dict[str, list[Wire]]:
        """Read rows of several tables, consistently, all of them."""
        named = " and ".join(request)
        found: dict[str, list[Wire]] = {table: [] for table in request}
        left: dict[str, Any] = {table: {**wanted, "ConsistentRead": True} for table, wanted in request.items()}
        patience = self._calls.patience("BatchGetItem", named)
        while left:
            body = self._calls("batch_get_item", named, patience=patience, RequestItems=left).body
            for table in found:
                found[table] += body["Responses"].get(table, ())
            left = body.get("UnprocessedKeys") or {}
            if left:
                patience.wait("UnprocessedKeys")
        return found

    def _query(self, pk: str, prefix: str) -> list[Wire]:
        names = {"#pk": tables.CONTROL_PK} | ({"#sk": tables.CONTROL_SK} if prefix else {})
        values = {":pk": {"S": pk}} | ({":prefix": {"S": prefix}} if prefix else {})
        request: dict[str, Any] = {
            "TableName": self._table,
            "ConsistentRead": True,
            "KeyConditionExpression": "#pk = :pk" + (" AND begins_with(#sk, :prefix)" if prefix else ""),
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
        }
        body = self._calls("query", self._table, **request).body
        found = list(body["Items"])
        while "LastEvaluatedKey" in body:
            body = self._calls("query", self._table, **request, ExclusiveStartKey=body["LastEvaluatedKey"]).body
            found += body["Items"]
        return found

    def _listing(self, listing: str, latest: int, start: Any) -> dict[str, Any]:
        request: dict[str, Any] = {} if start is None else {"ExclusiveStartKey": start}
        return self._calls(
            "query",
            self._table,
            TableName=self._table,
            IndexName=tables.LISTING_INDEX,
            KeyConditionExpression="#listing = :listing AND #at <= :latest",
            ExpressionAttributeNames={"#listing": tables.LISTING, "#at": tables.LISTED_AT},
            ExpressionAttributeValues={":listing": {"S": listing}, ":latest": {"N": str(latest)}},
            **request,
        ).body


def _committed(reply: Reply, new: Checkpoint) -> Commit:
    if not reply.refused:
        return Commit(won=True, checkpoint=new)
    reasons = reply.body.get("CancellationReasons")
    wire = reasons[0].get("Item") if reasons else reply.item
    return Commit(won=False, checkpoint=_checkpoint(wire) if wire else None)


def _take(wire: Wire, found: Checkpoints) -> None:
    """Take a checkpoint in by its queue, as its key names it; one that cannot be read by its error."""
    queue = rows.queue_of(wire)
    try:
        found.rows[queue] = _checkpoint(wire)
    except RowDamaged as error:
        found.damaged[queue] = error


def _checkpoint(wire: Wire) -> Checkpoint:
    return rows.row_of(rows.CheckpointRow, wire).checkpoint()


def _letter(wire: Wire) -> DeadLetter:
    return rows.row_of(rows.DeadLetterRow, wire).letter()


def _readable(read: Callable[[Wire], Read], wires: Iterable[Wire]) -> Iterator[Read]:
    """Rows that can be read: a damaged one is its own queue's trouble, and shows when that is looked at."""
    for wire in wires:
        with suppress(RowDamaged):
            yield read(wire)


def _letter_row(consumer: str, letter: DeadLetter) -> ControlRow:
    return rows.DeadLetterRow.of(consumer, letter)
