"""What DynamoDB would charge, by its own rules, for what a client asks: no emulator counts bytes as it does.

Items are weighed as they are sent: names, texts, half a byte a digit. A read costs what it went through.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Wire = dict[str, Any]
NAMES = re.compile(r"'([^']+)':\?")


@dataclass(slots=True)
class Charged:
    """Requests, and units by operation."""

    operations: Counter[str] = field(default_factory=Counter)
    write_units: float = 0.0
    read_units: float = 0.0

    @property
    def requests(self) -> int:
        return self.operations.total()


class Charges:
    """Hooks into a client; `measure` collects what is charged meanwhile, in all threads."""

    def __init__(self, client: Any, items_table: str) -> None:
        self._items = items_table
        self._sizes: dict[tuple[str, str], int] = {}
        self._hours: dict[str, str] = {}
        self._charged = Charged()
        self._lock = threading.Lock()
        client.meta.events.register("provide-client-params.dynamodb.*", self._asked)
        client.meta.events.register("after-call.dynamodb.*", self._answered)

    @contextmanager
    def measure(self) -> Iterator[Charged]:
        self._charged = charged = Charged()
        yield charged
        self._charged = Charged()

    def _asked(self, params: Wire, model: Any, context: Wire, **_: Any) -> None:
        del model
        context["asked"] = params

    def _answered(self, parsed: Wire, model: Any, context: Wire, **_: Any) -> None:
        assert "Error" not in parsed, parsed
        with self._lock:
            self._charged.operations[model.name] += 1
            getattr(self, f"_{model.name.lower()}")(context["asked"], parsed)

    def _putitem(self, asked: Wire, _: Wire) -> None:
        self._store(asked["TableName"], asked["Item"])

    def _batchexecutestatement(self, asked: Wire, parsed: Wire) -> None:
        assert not any("Error" in response for response in parsed["Responses"])
        for statement in asked["Statements"]:
            names = NAMES.findall(statement["Statement"])
            self._store(self._items, dict(zip(names, statement["Parameters"], strict=True)))

    def _updateitem(self, asked: Wire, parsed: Wire) -> None:
        # What puts a queue into the index of waiting ones, takes it out or moves it in there is a write to it, too.
        marks = asked["ExpressionAttributeNames"].get("#waiting") is not None
        moves_mark = marks and "SET" in asked["UpdateExpression"] and ":old_since" in asked["ExpressionAttributeValues"]
        self._charged.write_units += weigh(parsed["Attributes"], 1_024) + marks + moves_mark
        if "#hour" in asked["ExpressionAttributeNames"]:
            self._list_as_active(parsed["Attributes"])

    def _list_as_active(self, row: Wire) -> None:
        """The index of active queues is written when the hour is another one: out of one place, into another."""
        queue, hour = row["queue"]["S"], row["_ss_hour"]["N"]
        before = self._hours.get(queue)
        self._hours[queue] = hour
        self._charged.write_units += (hour != before) + (before is not None and hour != before)

    def _getitem(self, _: Wire, parsed: Wire) -> None:
        self._charged.read_units += weigh(parsed.get("Item", {}), 4_096)

    def _batchgetitem(self, asked: Wire, _: Wire) -> None:
        for table, wanted in asked["RequestItems"].items():
            share = 1.0 if wanted.get("ConsistentRead") else 0.5
            for key in wanted["Keys"]:
                size = self._sizes.get((key["queue"]["S"], key["seq"]["N"]), 0) if table == self._items else 0
                self._charged.read_units += units(size, 4_096) * share

    def _query(self, asked: Wire, parsed: Wire) -> None:
        if asked["TableName"] != self._items:
            size = sum(map(item_bytes, parsed["Items"]))
        else:
            queue = asked["ExpressionAttributeValues"][":queue"]["S"]
            size = sum(self._sizes[queue, item["seq"]["N"]] for item in parsed["Items"])
        self._charged.read_units += units(size, 4_096) * (1.0 if asked.get("ConsistentRead") else 0.5)

    def _scan(self, asked: Wire, parsed: Wire) -> None:
        assert not asked.get("ConsistentRead")
        self._charged.read_units += weigh_all(parsed["Items"], 4_096) / 2

    def _store(self, table: str, item: Wire) -> None:
        if table == self._items:
            self._sizes[item["queue"]["S"], item["seq"]["N"]] = item_bytes(item)
        if "_ss_hour" in item:
            self._list_as_active(item)
        self._charged.write_units += weigh(item, 1_024)


def weigh(item: Wire, unit: int) -> int:
    return units(item_bytes(item), unit)


def weigh_all(items: list[Wire], unit: int) -> int:
    return units(sum(map(item_bytes, items)), unit)


def units(size: int, unit: int) -> int:
    return max(1, -(-size // unit))


def item_bytes(item: Wire) -> int:
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: Wire) -> int:
    ((kind, inner),) = value.items()
    match kind:
        case "S":
            return len(inner.encode())
        case "N":
            digits = inner.strip("-0")
            return 1 + (len(digits) + 1) // 2 + inner.startswith("-")
        case _:
            return 1
