"""The tables that handlers write to, in dicts: conditions are held against what effects made before, all or none.

A table is there as soon as it is written to. What its key is, only effects tell, and some only by a guess.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.errors import EffectRefused
from stream_sort.stores.effects import MAX_KEYS, actions_of, check_items, item_key, name_of, named_keys
from stream_sort.stores.memory.conditions import holds
from stream_sort.stores.memory.expressions import Unreadable, check_placeholders
from stream_sort.stores.memory.updates import updated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.model.batch import Effect
    from stream_sort.stores.wire import Value

# What a condition tests may be a key.
TESTED = re.compile(r"attribute_(?:not_)?exists\s*\(\s*([#\w]+)\s*\)", re.IGNORECASE)
Place = tuple[str, tuple[Any, ...]]
# The items that a transaction leaves; None for one that is deleted.
Changes = dict[Place, "dict[str, Value] | None"]


@dataclass(slots=True)
class MemoryEffects:
    """All items by table and key, and the key names of tables, as far as they are known."""

    items: dict[Place, dict[str, Value]] = field(default_factory=dict)
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def changes(self, queue: str, effects: Sequence[Effect]) -> Changes:
        """Return what a transaction would change; EffectRefused or TransactionTooLarge if it cannot be made."""
        actions = actions_of(queue, effects)
        self._learn(actions)
        check_items(queue, actions, self.keys)
        changes: Changes = {}
        refusing = []
        for effect, action in zip(effects, actions, strict=True):
            (request,) = action.values()
            place = (request["TableName"], item_key(request, self.keys))
            try:
                if not self._holds(request, place):
                    refusing.append(f"{name_of(effect)} (ConditionalCheckFailed: The conditional request failed)")
                elif effect.kind != "ConditionCheck":
                    changes[place] = self._result(effect.kind, request, place)
            except Unreadable as error:
                raise EffectRefused(queue, [f"{name_of(effect)}: {error}"]) from None
            except RecursionError:
                raise EffectRefused(queue, [f"{name_of(effect)}: an expression is nested too deep"]) from None
        if refusing:
            raise EffectRefused(queue, refusing)
        return changes

    def apply(self, changes: Changes) -> None:
        """Make the changes."""
        for place, item in changes.items():
            if item is None:
                self.items.pop(place, None)
            else:
                self.items[place] = item

    def _holds(self, request: dict[str, Any], place: Place) -> bool:
        check_placeholders(request)
        return holds(request, self.items.get(place))

    def _result(self, kind: str, request: dict[str, Any], place: Place) -> dict[str, Value] | None:
        if kind == "Put":
            return dict(request["Item"])
        return updated(request, self.items.get(place)) if kind == "Update" else None

    def _learn(self, actions: Sequence[dict[str, Any]]) -> None:
        """Note the keys of tables; items that were put before their key was known get their place."""
        known = _guessed_keys(actions) | self.keys | named_keys(actions)
        new = {table for table, names in known.items() if self.keys.get(table) != names}
        self.keys = known
        for (table, old), item in list(self.items.items()):
            if table in new:
                del self.items[(table, old)]
                self.items[(table, item_key({"TableName": table, "Item": item}, self.keys))] = item


def _guessed_keys(actions: Sequence[dict[str, Any]]) -> dict[str, tuple[str, ...]]:
    """Return what may be the key of tables that are put to: what a condition wants there, or absent. It need not be."""
    requests = [request for action in actions for request in action.values() if "Item" in request]
    return {request["TableName"]: tested for request in requests if (tested := _tested(request))}


def _tested(request: dict[str, Any]) -> tuple[str, ...]:
    names = request.get("ExpressionAttributeNames") or {}
    found = {names.get(name, name) for name in TESTED.findall(str(request.get("ConditionExpression", "")))}
    return tuple(sorted(found)) if found and len(found) <= MAX_KEYS and found <= request["Item"].keys() else ()
