"""Counts what a boto3 DynamoDB client asks for: requests, and the units DynamoDB would charge for them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

READS = {"GetItem", "BatchGetItem", "Query", "Scan"}
WRITES = {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "BatchExecuteStatement", "TransactWriteItems"}
REFUSED = "ConditionalCheckFailedException"


@dataclass(slots=True)
class Usage:
    """What was asked for, by operation, and how long the answers took."""

    operations: Counter[str] = field(default_factory=Counter)
    units: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)

    @property
    def requests(self) -> int:
        return self.operations.total()

    @property
    def write_units(self) -> float:
        return sum(self.units[name] for name in WRITES)

    @property
    def read_units(self) -> float:
        return sum(self.units[name] for name in READS)

    def a_message(self, messages: int) -> str:
        """The requests of one typical message, for a look at where they go."""
        return ", ".join(f"{name} {count / messages:.3f}" for name, count in self.operations.most_common())


class Meter:
    """Hooks into a client; `measure` collects what it does meanwhile, in all threads."""

    def __init__(self, client: Any) -> None:
        self._usage = Usage()
        self._lock = threading.Lock()
        self._sending = threading.local()
        client.meta.events.register("provide-client-params.dynamodb.*", self._ask)
        client.meta.events.register("before-send.dynamodb.*", self._sent)
        client.meta.events.register("after-call.dynamodb.*", self._answered)

    @contextmanager
    def measure(self) -> Iterator[Usage]:
        self._usage = usage = Usage()
        yield usage
        self._usage = Usage()

    def _ask(self, params: dict[str, Any], model: Any, **_: Any) -> dict[str, Any]:
        if model.name == "BatchGetItem":
            # MiniStack names no units for it: one for each key of up to 4 KB, half if it may be stale.
            tables = params["RequestItems"].values()
            units = sum(len(table["Keys"]) * (1.0 if table.get("ConsistentRead") else 0.5) for table in tables)
            self._charge(model.name, units)
        asks_for_units = model.name in READS | WRITES
        return {**params, "ReturnConsumedCapacity": "TOTAL"} if asks_for_units else params

    def _sent(self, event_name: str, **_: Any) -> None:
        with self._lock:
            self._usage.operations[event_name.rsplit(".", 1)[1]] += 1
        self._sending.since = time.perf_counter()

    def _answered(self, parsed: dict[str, Any], model: Any, **_: Any) -> None:
        with self._lock:
            self._usage.seconds[model.name] += time.perf_counter() - self._sending.since
        if model.name == "BatchGetItem":
            return
        consumed = parsed.get("ConsumedCapacity") or []
        tables = consumed if isinstance(consumed, list) else [consumed]
        # A refused write is charged, too, but the answer does not say so; all items here are below 1 KB.
        refused = parsed.get("Error", {}).get("Code") == REFUSED
        self._charge(model.name, refused + sum(table["CapacityUnits"] for table in tables))

    def _charge(self, operation: str, units: float) -> None:
        with self._lock:
            self._usage.units[operation] += units
