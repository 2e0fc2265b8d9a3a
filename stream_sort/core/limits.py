"""What fits into one DynamoDB transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.errors import TransactionTooLarge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.core.batch import Effect

# 100 actions, of which the checkpoint and a dead letter take two.
MAX_EFFECTS = 98


def check_transaction(queue: str, effects: Sequence[Effect]) -> None:
    """Raise TransactionTooLarge if the effects of a batch cannot go with its checkpoint."""
    if len(effects) > MAX_EFFECTS:
        raise TransactionTooLarge(queue, f"{len(effects)} effects in one transaction; there may be {MAX_EFFECTS}")
    seen = set()
    for effect in effects:
        if "Key" in effect.request:
            item = (effect.table, repr(sorted(effect.request["Key"].items())))
            if item in seen:
                raise TransactionTooLarge(queue, f"two effects on the item {item[1]} of table {effect.table!r}")
            seen.add(item)
