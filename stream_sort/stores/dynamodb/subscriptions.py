"""Subscriptions on DynamoDB: a row for each consumer, and one for the watch over them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from pynamodb.attributes import BooleanAttribute, NumberAttribute, UnicodeAttribute

from stream_sort.errors import RowDamaged, SettingsError, shown
from stream_sort.model.consumption import Consumers, Subscription, check_start
from stream_sort.stores.dynamodb import control_rows as rows
from stream_sort.stores.dynamodb import tables

if TYPE_CHECKING:
    from stream_sort.stores.dynamodb.control import ControlTable

CONSUMERS = "consumers"
SWEEP = "sweep"
# Not "bookmark", under which an earlier version keeps what this one could not read, and the other way round.
BOOKMARK = "watch"


class ConsumerRow(rows.ControlRow):
    """A consumer that is known; one that is retired stays, with the time."""

    start = UnicodeAttribute()
    since = NumberAttribute()
    ready = BooleanAttribute()
    retired_at = NumberAttribute(null=True)

    @classmethod
    def of(cls, subscription: Subscription) -> ConsumerRow:
        """Return the row of a consumer."""
        return cls(
            CONSUMERS,
            subscription.name,
            start=subscription.start,
            since=rows.millis(subscription.since),
            ready=subscription.ready,
            retired_at=rows.millis(subscription.retired_at),
        )

    def subscription(self) -> Subscription:
        """Return the consumer of a row; RowDamaged for one whose start is none."""
        since, retired_at = rows.seconds(self.since) or 0.0, rows.seconds(self.retired_at)
        try:
            start = check_start(self.start)
        except SettingsError as error:
            text = f"the control table holds a registration of {shown(self.sk)} that is not ours: {error}"
            raise RowDamaged(text) from error
        return Subscription(str(self.sk), start, since, ready=bool(self.ready), retired_at=retired_at)


class BookmarkRow(rows.ControlRow):
    """What a watch keeps between two looks, as JSON."""

    place = UnicodeAttribute(null=True)

    def value(self) -> Any:
        """Return what was kept; None for a text that is no JSON, which nobody here wrote."""
        # pynamodb's types do not say that an attribute may be absent.
        text: str | None = cast("str | None", self.place)
        try:
            return None if text is None else json.loads(text)
        except ValueError:
            return None


class DynamoSubscriptions:
    """Subscriptions in a control table."""

    def __init__(self, table: ControlTable) -> None:
        self._table = table

    def register(self, subscription: Subscription) -> Subscription:
        """See Subscriptions."""
        there = self.introduce(subscription)
        if not there.is_retired:
            return there
        self._update(there.name, "REMOVE #retired", "attribute_exists(#retired)")
        return replace(there, retired_at=None)

    def introduce(self, subscription: Subscription) -> Subscription:
        """See Subscriptions."""
        wire = self._table.get(CONSUMERS, subscription.name)
        if wire is None:
            reply = self._table.put(ConsumerRow.of(subscription), ConsumerRow.pk.does_not_exist())
            wire = reply.item if reply.refused else None
        return subscription if wire is None else rows.row_of(ConsumerRow, wire).subscription()

    def make_ready(self, subscription: Subscription) -> None:
        """See Subscriptions."""
        self._update(subscription.name, "SET #ready = :value", "attribute_exists(#pk)", {"BOOL": True})

    def consumers(self, *, retired: bool = False) -> list[Subscription]:
        """See Subscriptions."""
        found = self.readable_consumers()
        for error in found.damaged.values():
            raise error
        return [one for one in found.rows.values() if one.is_retired is retired]

    def readable_consumers(self) -> Consumers:
        """See Subscriptions."""
        found = Consumers({})
        for wire in self._table.query(CONSUMERS, ""):
            name = str(wire[tables.CONTROL_SK].get("S", ""))
            try:
                found.rows[name] = rows.row_of(ConsumerRow, wire).subscription()
            except RowDamaged as error:
                found.damaged[name] = error
        return found

    def retire(self, consumer: str, now: float) -> None:
        """See Subscriptions."""
        row_is_there, is_not_retired = "attribute_exists(#pk)", "attribute_not_exists(#retired)"
        condition = f"{row_is_there} AND {is_not_retired}"
        self._update(consumer, "SET #retired = :value", condition, {"N": str(round(now * 1000))})

    def bookmark(self) -> Any:
        """See Subscriptions."""
        wire = self._table.get(SWEEP, BOOKMARK)
        return None if wire is None else rows.row_of(BookmarkRow, wire).value()

    def set_bookmark(self, place: Any) -> None:
        """See Subscriptions."""
        text = None if place is None else json.dumps(place)
        row = BookmarkRow(SWEEP, BOOKMARK, place=text)
        self._table.put(row)

    def _update(self, name: str, update: str, condition: str, value: Any = None) -> None:
        """Change one attribute of a consumer on a condition that demands its row: an update would make half of one."""
        kind, text = ConsumerRow, update + condition
        aliases = {"#pk": kind.pk.attr_name, "#ready": kind.ready.attr_name, "#retired": kind.retired_at.attr_name}
        values: dict[str, Any] = {} if value is None else {"ExpressionAttributeValues": {":value": value}}
        self._table.calls(
            "update_item",
            self._table.name,
            Key=rows.key_of(CONSUMERS, name),
            UpdateExpression=update,
            ConditionExpression=condition,
            ExpressionAttributeNames={alias: name for alias, name in aliases.items() if alias in text},
            **values,
        )
