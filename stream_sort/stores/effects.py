"""A handler's effects as actions of one transaction: what can be written at all, and what fits. Knows no SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stream_sort.errors import EffectRefused, StreamSortError, TransactionTooLarge, shown
from stream_sort.stores.wire import Unstorable, canonical_entries, entries_of, size_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stream_sort.model.batch import Effect
    from stream_sort.stores.wire import Value

# What fits into one DynamoDB transaction: 100 actions, of which the checkpoint and a dead letter take two.
MAX_EFFECTS = 98
MAX_ITEM_BYTES = 400 * 1024
MAX_TRANSACTION_BYTES = 4 * 1024 * 1024
# Of a partition key; a sort key may have half of that.
MAX_KEY_BYTES = 2048
MAX_EXPRESSION_BYTES = 4 * 1024
VALUES = frozenset({"Item", "Key", "ExpressionAttributeValues"})
KEY_KINDS = frozenset({"S", "N", "B"})
MAX_KEYS = 2


def name_of(effect: Effect) -> str:
    """Return an effect in words, without its values."""
    return f"{str.__str__(effect.kind)} on table {str.__str__(effect.table)!r}"


def actions_of(queue: str, effects: Sequence[Effect]) -> list[dict[str, Any]]:
    """Return the effects in DynamoDB's form.

    EffectRefused for what no table holds, TransactionTooLarge for what does not fit into one transaction.
    """
    if len(effects) > MAX_EFFECTS:
        raise TransactionTooLarge(queue, f"{len(effects)} effects in one transaction; there may be {MAX_EFFECTS}")
    actions = []
    for effect in effects:
        try:
            actions.append(_action(effect))
        except StreamSortError:
            raise
        except (Unstorable, RecursionError) as error:
            raise EffectRefused(queue, [f"{name_of(effect)}: {error}"]) from None
        except Exception as error:  # noqa: BLE001  # values are of strangers' classes: to read one may raise anything
            raise EffectRefused(queue, [f"{name_of(effect)}: it cannot be read: {shown(error)}"]) from None
    _check_size(queue, actions)
    check_items(queue, actions, named_keys(actions))
    return actions


def named_keys(actions: Sequence[dict[str, Any]]) -> dict[str, tuple[str, ...]]:
    """Return the key names of the tables that are written to, as far as `Key` names them."""
    requests = [request for action in actions for request in action.values() if "Key" in request]
    return {request["TableName"]: tuple(sorted(request["Key"])) for request in requests}


def item_key(request: dict[str, Any], keys: Mapping[str, tuple[str, ...]]) -> tuple[Any, ...]:
    """Return the item an action is about: that of its key; where nothing tells the key, the whole item is its own."""
    if "Key" in request:
        return canonical_entries(request["Key"])
    item: dict[str, Value] = request["Item"]
    names = keys.get(request["TableName"], ())
    return canonical_entries({name: item[name] for name in names} if names and item.keys() >= set(names) else item)


def _action(effect: Effect) -> dict[str, Any]:
    """Return the action of an effect, with plain texts in it: nobody who reads them again can fail."""
    request: dict[str, Any] = {"TableName": str.__str__(effect.table)}
    for name, given in effect.request.items():
        if name not in VALUES:
            _check_expression(name, given)
            request[name] = _plain(given)
            continue
        try:
            request[name] = entries_of(given)
        except (Unstorable, AttributeError, TypeError) as error:
            raise Unstorable(f"{name}: {error}") from None
    if "Key" in request:
        _check_key(request["Key"])
    if "Item" in request:
        _check_item(request["Item"])
    return {str.__str__(effect.kind): request}


def _plain(given: object) -> object:
    """Return an expression, or the names in one."""
    if isinstance(given, str):
        return str.__str__(given)
    return {_plain(name): _plain(inner) for name, inner in given.items()} if isinstance(given, dict) else given


def _check_expression(name: str, given: object) -> None:
    if isinstance(given, str) and len(given.encode()) > MAX_EXPRESSION_BYTES:
        raise Unstorable(f"{name}: over the {MAX_EXPRESSION_BYTES:,} bytes of an expression")


def _check_key(key: dict[str, Value]) -> None:
    if not 1 <= len(key) <= MAX_KEYS:
        raise Unstorable(f"Key: a key has one or two attributes, not {len(key)}")
    for name, value in key.items():
        ((kind, inner),) = value.items()
        if kind not in KEY_KINDS:
            raise Unstorable(f"Key: {name}: a key is text, a number or bytes")
        if not inner:
            raise Unstorable(f"Key: {name}: a key is not empty")
        if kind != "N" and len(inner.encode() if kind == "S" else inner) > MAX_KEY_BYTES:
            raise Unstorable(f"Key: {name}: over the {MAX_KEY_BYTES:,} bytes of a key")


def _check_item(item: dict[str, Value]) -> None:
    if not item:
        raise Unstorable("Item: no item is empty: it has its key at the least")
    size = size_of(item)
    if size > MAX_ITEM_BYTES:
        raise Unstorable(f"Item: {size:,} bytes; an item may have {MAX_ITEM_BYTES:,}, the maximum allowed size")


def _check_size(queue: str, actions: Sequence[dict[str, Any]]) -> None:
    requests = [request for action in actions for request in action.values()]
    size = sum(size_of(request.get(name, {})) for request in requests for name in VALUES)
    if size > MAX_TRANSACTION_BYTES:
        raise TransactionTooLarge(queue, f"{size:,} bytes in one transaction; there may be {MAX_TRANSACTION_BYTES:,}")


def check_items(queue: str, actions: Sequence[dict[str, Any]], keys: Mapping[str, tuple[str, ...]]) -> None:
    """Raise TransactionTooLarge if two actions are about one item: DynamoDB takes one for each only."""
    seen = set()
    for action in actions:
        (request,) = action.values()
        item = (request["TableName"], item_key(request, keys))
        if item in seen:
            named = ", ".join(f"{name} = {value[1]!r:.80}" for name, value in item[1])
            raise TransactionTooLarge(queue, f"two effects on the item {named} of table {item[0]!r}")
        seen.add(item)
