"""What a handler is given: messages of one queue in order, and a transaction for effects that must happen once."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.errors import InvalidInput, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

ITEMS = frozenset({"Item", "Key"})
EXPRESSIONS = frozenset({"ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues"})


@dataclass(frozen=True, slots=True)
class Effect:
    """One DynamoDB write of a transaction: `kind` as TransactWriteItems names it, `request` in plain Python values."""

    kind: str
    table: str
    request: dict[str, Any]


@dataclass(slots=True)
class Transaction:
    """Collects DynamoDB writes; they are applied together with the checkpoint, all or none, exactly once.

    Nothing is written while the handler runs. Keywords are boto3's: ConditionExpression,
    ExpressionAttributeNames, ExpressionAttributeValues. Values are plain Python ones.
    """

    effects: list[Effect] = field(default_factory=list)

    def put(self, table: str, item: dict[str, Any], **expressions: Any) -> None:
        """Write a whole item."""
        self._add("Put", table, {"Item": item}, expressions)

    def update(self, table: str, key: dict[str, Any], expression: str, **expressions: Any) -> None:
        """Change an item: `update("Totals", {"id": "a"}, "ADD paid :n", ExpressionAttributeValues={":n": 5})`."""
        self._add("Update", table, {"Key": key, "UpdateExpression": expression}, expressions)

    def delete(self, table: str, key: dict[str, Any], **expressions: Any) -> None:
        """Delete an item."""
        self._add("Delete", table, {"Key": key}, expressions)

    def condition(self, table: str, key: dict[str, Any], expression: str, **expressions: Any) -> None:
        """Demand something of an item that is not written; if it does not hold, nothing is applied."""
        self._add("ConditionCheck", table, {"Key": key, "ConditionExpression": expression}, expressions)

    def __len__(self) -> int:
        return len(self.effects)

    def _add(self, kind: str, table: str, request: dict[str, Any], expressions: dict[str, Any]) -> None:
        if not isinstance(table, str) or not table:
            raise InvalidInput(f"transaction: a table is named by text, not by {shown(table)}")
        for name in ITEMS & request.keys():
            given = request[name]
            if not isinstance(given, dict) or not all(isinstance(field, str) for field in given):
                raise InvalidInput(f"transaction: {name} is a dict with text for its names, not {shown(given)}")
        unknown = expressions.keys() - EXPRESSIONS
        if unknown:
            raise InvalidInput(f"transaction: {sorted(unknown)} not known; there are {sorted(EXPRESSIONS)}")
        # A copy: handlers like to fill one dict again and again.
        self.effects.append(Effect(kind, table, copy.deepcopy(request | expressions)))


@dataclass(slots=True)
class Batch:
    """Messages of one queue, in order, nothing missing; skipped seqs are left out.

    It covers `(after, through]`. `attempt` is 1 the first time, more when these messages failed before.
    """

    queue: str
    after: int
    through: int
    messages: tuple[dict[str, Any], ...]
    seqs: tuple[int, ...]
    attempt: int = 1
    transaction: Transaction = field(default_factory=Transaction)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.messages)

    def __len__(self) -> int:
        return len(self.messages)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.messages[index]
