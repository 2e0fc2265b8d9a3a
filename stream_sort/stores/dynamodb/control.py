"""The control table on DynamoDB: its three ports, and the requests that they share."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from stream_sort.errors import SettingsError
from stream_sort.model.table_names import check_table_name
from stream_sort.ports import ControlStores
from stream_sort.stores.dynamodb import control_rows as rows
from stream_sort.stores.dynamodb import tables
from stream_sort.stores.dynamodb.checkpoints import DynamoCheckpoints
from stream_sort.stores.dynamodb.dead_letters import DynamoDeadLetters
from stream_sort.stores.dynamodb.paging import batch_get, pages, read_rows, rows_of
from stream_sort.stores.dynamodb.subscriptions import DynamoSubscriptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stream_sort.stores.dynamodb.calls import Calls, Reply
    from stream_sort.stores.dynamodb.control_rows import ControlRow
    from stream_sort.stores.dynamodb.paging import FoundRows
    from stream_sort.stores.dynamodb.tables import TableNames
    from stream_sort.stores.dynamodb.values import Wire


class ControlTable:
    """One control table."""

    def __init__(self, calls: Calls, name: str) -> None:
        self.calls = calls
        self.name = check_table_name(name)

    def create(self) -> None:
        """Create the table if it is not there, and wait for it."""
        tables.create_table(self.calls, tables.control_table(self.name))

    def get(self, pk: str, sk: str) -> Wire | None:
        """Read one row."""
        key = rows.key_of(pk, sk)
        return self.calls("get_item", self.name, Key=key, ConsistentRead=True).item

    def put_action(self, row: ControlRow, condition: Any = None) -> dict[str, Any]:
        """Return the put of a row, on a condition if there is one, as an action of a transaction."""
        checked = {} if condition is None else rows.condition_of(condition)
        return {"Put": {"TableName": self.name, "Item": rows.wire_of(row), **checked}}

    def put(self, row: ControlRow, condition: Any = None) -> Reply:
        """Put a row."""
        return self.calls("put_item", self.name, **self.put_action(row, condition)["Put"])

    def rows(self, keys: Sequence[Wire]) -> Iterator[Wire]:
        """Read those rows that are there, consistently, a hundred a request."""
        yield from rows_of(self.calls, self.name, keys, ConsistentRead=True)

    def found(self, keys: Sequence[Wire]) -> FoundRows:
        """Read the same, and name the keys that got no answer."""
        return read_rows(self.calls, self.name, keys, ConsistentRead=True)

    def batch_get(self, request: dict[str, dict[str, Any]]) -> dict[str, list[Wire]]:
        """Read rows of several tables, consistently, all of them."""
        found: dict[str, list[Wire]] = {table: [] for table in request}
        for part in batch_get(self.calls, {table: {**one, "ConsistentRead": True} for table, one in request.items()}):
            for table, some in part.items():
                found[table] += some
        return found

    def query(self, pk: str, prefix: str) -> list[Wire]:
        """Read all rows of one partition key, those whose sort key begins with a prefix."""
        names = {"#pk": tables.CONTROL_PK} | ({"#sk": tables.CONTROL_SK} if prefix else {})
        values = {":pk": {"S": pk}} | ({":prefix": {"S": prefix}} if prefix else {})
        request: dict[str, Any] = {
            "ConsistentRead": True,
            "KeyConditionExpression": "#pk = :pk" + (" AND begins_with(#sk, :prefix)" if prefix else ""),
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
        }
        read = partial(self.calls.body, "query", self.name)
        return [wire for body in pages(read, **request) for wire in body["Items"]]

    def listing(self, listing: str, latest: int, start: Any) -> dict[str, Any]:
        """Read one page of what is listed at or before `latest`."""
        request = {
            "IndexName": tables.LISTING_INDEX,
            "KeyConditionExpression": "#listing = :listing AND #at <= :latest",
            "ExpressionAttributeNames": {"#listing": tables.LISTING, "#at": tables.LISTED_AT},
            "ExpressionAttributeValues": {":listing": {"S": listing}, ":latest": {"N": str(latest)}},
        }
        return next(pages(partial(self.calls.body, "query", self.name), start, **request))


def control_stores(calls: Calls, names: TableNames, name: str) -> ControlStores:
    """Return the ports onto a control table, which stands beside the items and cursor tables of `names`."""
    table = ControlTable(calls, name)
    if name in {names.items, names.cursor}:
        raise SettingsError(f"control_table is {name!r}, as another table is; it must have a name of its own")
    return ControlStores(
        DynamoCheckpoints(table, names), DynamoDeadLetters(table), DynamoSubscriptions(table), table.create
    )
