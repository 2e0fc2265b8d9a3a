"""The rows of the control table as pynamodb models: they give rows their form and conditions their text.

Requests go through `Calls` like all others, so that one client, one deadline and one table of errors serve everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pynamodb.attributes import NumberAttribute, UnicodeAttribute
from pynamodb.models import Model

from stream_sort.errors import RowDamaged, shown
from stream_sort.stores.dynamodb import tables

if TYPE_CHECKING:
    from pynamodb.expressions.condition import Condition

    from stream_sort.stores.dynamodb.values import Wire

    Row = TypeVar("Row", bound="ControlRow")

CHECKPOINT = "checkpoint"
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


def place_of(consumer: str, queue: str, seq: int | None = None) -> tuple[str, str]:
    """Return the keys of a checkpoint, or of a dead letter; no two share them: a consumer's name has no `#`."""
    return f"{consumer}#{queue}", CHECKPOINT if seq is None else f"dead#{seq + SEQ_OFFSET:020d}"


def queue_of(wire: Wire) -> str:
    """Return the queue of a checkpoint or a dead letter, by its key: nothing else of a row is sure to be there."""
    return str(wire[tables.CONTROL_PK].get("S", "")).partition("#")[2]


def parked_listing(consumer: str) -> str:
    """Return the name under which the parked queues of a consumer are listed."""
    return f"parked#{consumer}"


def dead_listing(consumer: str) -> str:
    """Return the name under which the dead letters of a consumer are listed."""
    return f"dead#{consumer}"


def key_of(pk: str, sk: str) -> Wire:
    """Return a row's key."""
    return {tables.CONTROL_PK: {"S": pk}, tables.CONTROL_SK: {"S": sk}}


def wire_of(row: ControlRow) -> Wire:
    """Return a row as requests carry it."""
    return dict(row.serialize())


def row_of(kind: type[Row], wire: Wire) -> Row:
    """Read a row as answers carry it, without attributes of a later version; RowDamaged for what is no such row."""
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
    """Return a condition as a request carries it."""
    names: dict[str, str] = {}
    values: dict[str, Any] = {}
    text = condition.serialize(names, values)
    request: dict[str, Any] = {
        "ConditionExpression": text,
        "ExpressionAttributeNames": {placeholder: name for name, placeholder in names.items()},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    return request | ({"ExpressionAttributeValues": values} if values else {})


def whole(number: float | None) -> int | None:
    """Return a number of a row as an int."""
    return None if number is None else int(number)


def millis(seconds: float | None) -> int | None:
    """Return a time as rows keep it."""
    return None if seconds is None else round(seconds * 1000)


def seconds(millis: float | None) -> float | None:
    """Return a time of a row in seconds."""
    return None if millis is None else millis / 1000
