"""Large tables in a dict behind the calls of a DynamoDB client, with its limits: to count requests where moto is slow.

That the stores ask for the right things is shown by their contract, on moto and MiniStack.
"""

from __future__ import annotations

import re
from collections import Counter
from types import SimpleNamespace
from typing import Any

Wire = dict[str, Any]
PAGE_BYTES, MOST_KEYS = 1_048_576, 100
CLAUSE = re.compile(r"(#\w+) (=|<=|>=) (:\w+)|begins_with\((#\w+), (:\w+)\)")
KEYS = {"Cursor": ("queue",), "Control": ("pk", "sk")}


class WireTables:
    """Rows by their keys; `requests` counts what was asked."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[tuple[str, ...], Wire]] = {name: {} for name in KEYS}
        self.requests: Counter[str] = Counter()
        self.meta = SimpleNamespace(region_name="eu-west-1", endpoint_url="memory")

    def batch_execute_statement(self, **_: Any) -> None:
        """What tells a client from anything else."""

    def seed(self, table: str, rows: list[Wire]) -> None:
        self.tables[table].update((self._key(table, row), row) for row in rows)

    def get_item(self, **request: Any) -> Wire:
        self.requests["GetItem"] += 1
        table = request["TableName"]
        there = self.tables[table].get(self._key(table, request["Key"]))
        return {} if there is None else {"Item": there}

    def put_item(self, **request: Any) -> Wire:
        self.requests["PutItem"] += 1
        self.seed(request["TableName"], [request["Item"]])
        return {}

    def batch_get_item(self, **request: Any) -> Wire:
        self.requests["BatchGetItem"] += 1
        asked = {table: wanted["Keys"] for table, wanted in request["RequestItems"].items()}
        assert sum(map(len, asked.values())) <= MOST_KEYS
        found = {
            table: [self.tables[table].get(self._key(table, key)) for key in keys] for table, keys in asked.items()
        }
        return {"Responses": {table: [row for row in rows if row is not None] for table, rows in found.items()}}

    def scan(self, **request: Any) -> Wire:
        self.requests["Scan"] += 1
        return self._page(request, list(self.tables[request["TableName"]].values()))

    def query(self, **request: Any) -> Wire:
        self.requests["Query"] += 1
        names, values = request["ExpressionAttributeNames"], request["ExpressionAttributeValues"]
        clauses = [
            (names[match[1] or match[4]], match[2], values[match[3] or match[5]])
            for match in CLAUSE.finditer(request["KeyConditionExpression"])
        ]
        table = self.tables[request["TableName"]]
        return self._page(request, [row for row in table.values() if all(_holds(row, *clause) for clause in clauses)])

    def _page(self, request: Wire, rows: list[Wire]) -> Wire:
        table, limit, start = request["TableName"], request.get("Limit"), request.get("ExclusiveStartKey")
        first = 0
        if start is not None:
            first = 1 + next(at for at, row in enumerate(rows) if self._key(table, row) == self._key(table, start))
        end, size = first, 0
        while end < len(rows) and size < PAGE_BYTES and (limit is None or end - first < limit):
            size += len(repr(rows[end]))
            end += 1
        page: Wire = {"Items": rows[first:end]}
        if end < len(rows):
            page["LastEvaluatedKey"] = {name: rows[end - 1][name] for name in KEYS[table]}
        return page

    def _key(self, table: str, row: Wire) -> tuple[str, ...]:
        return tuple(row[name]["S"] for name in KEYS[table])


def _holds(row: Wire, name: str, operator: str, value: Wire) -> bool:
    if name not in row:
        return False
    ((kind, wanted),) = value.items()
    there = row[name][kind]
    match operator:
        case "=":
            return bool(there == wanted)
        case "<=":
            return int(there) <= int(wanted)
        case ">=":
            return int(there) >= int(wanted)
        case _:
            return bool(there.startswith(wanted))
