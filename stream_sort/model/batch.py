"""What a handler is given: messages of one queue in order, and a transaction for effects that must happen once."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.errors import HandlerProblem, InvalidInput, shown
from stream_sort.model.message import is_text

if TYPE_CHECKING:
    from collections.abc import Iterator

# What each kind of effect needs.
KINDS = {
    "Put": frozenset({"Item"}),
    "Update": frozenset({"Key", "UpdateExpression"}),
    "Delete": frozenset({"Key"}),
    "ConditionCheck": frozenset({"Key", "ConditionExpression"}),
}
HOLDERS = frozenset({"Item", "Key", "ExpressionAttributeNames", "ExpressionAttributeValues"})
EXPRESSIONS = frozenset({"ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues"})


@dataclass(frozen=True, slots=True)
class Effect:
    """One DynamoDB write of a transaction: `kind` as TransactWriteItems names it, `request` in plain Python values."""

    kind: str
    table: str
    request: dict[str, Any]


@dataclass(frozen=True, slots=True)
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
        effect = Effect(kind, table, request | expressions)
        _check(effect)
        # A copy: handlers like to fill one dict again and again.
        self.effects.append(copy.deepcopy(effect))


def taken_from(transaction: Transaction) -> tuple[Effect, ...]:
    """Return what a handler left in its transaction; HandlerProblem if there is anything but effects."""
    effects = transaction.effects
    if not isinstance(effects, list) or not all(isinstance(effect, Effect) for effect in effects):
        raise HandlerProblem(f"transaction: only put, update, delete and condition add effects, not {shown(effects)}")
    taken = tuple(effects)
    for effect in taken:
        try:
            _check(effect)
        except InvalidInput as error:
            raise HandlerProblem(str(error)) from None
    return taken


def _check(effect: Effect) -> None:
    """Raise InvalidInput for what can be no effect, whatever its values are."""
    if not _is_written(effect.table):
        raise InvalidInput(f"transaction: a table is named by text, not by {shown(effect.table)}")
    needed = KINDS.get(effect.kind) if isinstance(effect.kind, str) else None
    if needed is None or not isinstance(effect.request, dict) or not needed <= effect.request.keys():
        raise InvalidInput(f"transaction: {shown(effect)} is no effect; use put, update, delete and condition")
    unknown = effect.request.keys() - needed - EXPRESSIONS
    if unknown:
        raise InvalidInput(f"transaction: {shown(unknown)} not known; there are {sorted(EXPRESSIONS)}")
    for name, given in effect.request.items():
        if name in HOLDERS:
            _check_holder(name, given)
        elif not _is_written(given):
            raise InvalidInput(f"transaction: {name} is text, not {shown(given)}")


def _check_holder(name: str, given: object) -> None:
    if not isinstance(given, dict) or not all(isinstance(field, str) for field in given):
        raise InvalidInput(f"transaction: {name} is a dict with text for its names, not {shown(given)}")
    if name == "ExpressionAttributeNames" and not all(map(_is_written, [*given, *given.values()])):
        raise InvalidInput(f"transaction: {name} is a dict of texts, not {shown(given)}")


def _is_written(text: object) -> bool:
    return isinstance(text, str) and bool(text) and is_text(text)


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages of one queue, in order, nothing missing; skipped seqs are left out. It cannot be changed.

    It covers `(after, through]`. `attempt` counts how often the handler is given a message by itself, this time
    included; it is 1 for a batch of several. The redrive of a dead letter goes on counting; that of a parked message
    begins at 1, and it has all its attempts again. A death of the process that nobody noted is not counted: deaths that
    follow each other faster than a run may last, and a minute, count as one at most (docs/limits.md, "A message that
    kills its process"; decision 23). `replayed` says that the consumer has had these messages before it was reset,
    dead and discarded ones included; where that is not certain, and in the redrive of a dead letter, it is False.
    """

    queue: str
    after: int
    through: int
    messages: tuple[dict[str, Any], ...]
    seqs: tuple[int, ...]
    attempt: int = 1
    transaction: Transaction = field(default_factory=Transaction)
    replayed: bool = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.messages)

    def __len__(self) -> int:
        return len(self.messages)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.messages[index]
