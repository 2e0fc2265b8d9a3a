"""What reading a plan from a table will cost, before it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.aws.clients import make_client
from stream_sort.stores.dynamodb.calls import Calls

if TYPE_CHECKING:
    from stream_sort.replay.engine.plan import JobPlan
    from stream_sort.replay.origins.access import TableAccess

UNIT_BYTES = 4096
PATIENCE = 10.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """Read units, and the average size of an item that they were reckoned with; None where nobody knows it."""

    item_bytes: float | None
    read_units: float | None


def estimate(access: TableAccess, plan: JobPlan, *, consistent: bool) -> Estimate:
    """Estimate by what DynamoDB says of the table's size, which it renews every six hours; read no item."""
    size = average_item(access)
    if size is None:
        return Estimate(None, None)
    # Query bills the bytes of a page together, not each item by itself, and at least one unit for each range.
    units = max(plan.rows * size / UNIT_BYTES, float(sum(1 for _ in plan.ranges())))
    return Estimate(size, units if consistent else units / 2)


def average_item(access: TableAccess) -> float | None:
    """Return the average size of an item in bytes; None for a table that DynamoDB has not counted yet."""
    client = make_client(access.settings, region=access.region, endpoint_url=access.endpoint_url)
    table = access.items_table
    told = Calls(client, PATIENCE)("describe_table", table, TableName=table).body["Table"]
    count, size = told.get("ItemCount") or 0, told.get("TableSizeBytes") or 0
    return size / count if count and size else None
