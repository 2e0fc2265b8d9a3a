"""A handler's effects as actions of TransactWriteItems."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from boto3.dynamodb.types import TypeSerializer

from stream_sort.errors import EffectRefused, TransactionTooLarge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.core.batch import Effect

VALUES = frozenset({"Item", "Key", "ExpressionAttributeValues"})
MAX_BYTES = 4 * 1024 * 1024
SERIALIZER = TypeSerializer()


def actions_of(queue: str, effects: Sequence[Effect]) -> list[dict[str, Any]]:
    """The effects in DynamoDB's form; EffectRefused for a value that no DynamoDB type holds."""
    return [_action(queue, effect) for effect in effects]


def check_size(queue: str, actions: Sequence[dict[str, Any]]) -> None:
    """Raise TransactionTooLarge if what is to be written is over 4 MB by itself; DynamoDB counts whole items."""
    size = sum(_size(request.get(name, {})) for action in actions for request in action.values() for name in VALUES)
    if size > MAX_BYTES:
        raise TransactionTooLarge(queue, f"{size:,} bytes in one transaction; there may be {MAX_BYTES:,}")


def name_of(effect: Effect) -> str:
    """An effect in words, without its values."""
    return f"{effect.kind} on table {effect.table!r}"


def _action(queue: str, effect: Effect) -> dict[str, Any]:
    request: dict[str, Any] = {"TableName": effect.table}
    for name, given in effect.request.items():
        try:
            exact = _exact(given)
            request[name] = (
                {key: SERIALIZER.serialize(value) for key, value in exact.items()} if name in VALUES else exact
            )
        except (TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
            raise EffectRefused(queue, [f"{name_of(effect)}: {name}: {error}"]) from error
    return {effect.kind: request}


def _size(wire: Any) -> int:
    """The bytes of names and values, without what DynamoDB adds for each."""
    if isinstance(wire, dict):
        return sum(len(str(name).encode()) + _size(inner) for name, inner in wire.items())
    if isinstance(wire, list):
        return sum(map(_size, wire))
    return len(wire.encode() if isinstance(wire, str) else wire) if isinstance(wire, str | bytes) else 1


def _exact(value: Any) -> Any:
    """Floats as boto3 wants them: the Decimal of their shortest text. Text that is no UTF-8 is a ValueError."""
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, str):
        value.encode()
        return value
    if isinstance(value, dict):
        return {_exact(name): _exact(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_exact(inner) for inner in value]
    if isinstance(value, set | frozenset):
        return {_exact(inner) for inner in value}
    return value
