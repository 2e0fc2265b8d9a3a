"""A write of ours together with a handler's effects: all or none, and whose fault it is if none."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from stream_sort.core.effects import actions_of, name_of
from stream_sort.errors import (
    AccessDenied,
    CredentialsError,
    EffectRefused,
    SettingsError,
    StoreError,
    StoreUnavailable,
    TableNotFound,
    TransactionTooLarge,
    TryLater,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.core.batch import Effect
    from stream_sort.stores.dynamodb.calls import Calls, Reply

REFUSED = "ConditionalCheckFailed"
# What IAM calls the parts of a transaction.
ACTIONS = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}
TOO_LARGE = ("multiple operations on one item", "size", "less than or equal to 100")


def transact(
    calls: Calls, table: str, actions: Sequence[dict[str, Any]], queue: str, effects: Sequence[Effect]
) -> Reply:
    """Write all or nothing.

    Refused is the answer if the condition of the first action failed: somebody else was faster, and whatever else
    failed does not matter. What keeps the effects from being written is raised: EffectRefused, TransactionTooLarge, or
    TryLater where their table, or the right to write to it, is missing.
    """
    wanted = [*actions, *actions_of(queue, effects)]
    try:
        # The same token in every try: a try whose reply was lost is not done twice.
        token = str(uuid.uuid4())
        reply = calls("transact_write_items", table, TransactItems=wanted, ClientRequestToken=token)
    except (StoreUnavailable, CredentialsError):
        raise
    except (StoreError, SettingsError) as error:
        if not effects:
            raise
        # From what AWS said: our own error names the control table, which is not the one at fault.
        raise _fault_of(queue, effects, error) from error.__cause__
    reasons = reply.body.get("CancellationReasons", [])
    if reply.refused and reasons and reasons[0].get("Code") != REFUSED:
        raise EffectRefused(queue, _refusing(effects, reasons[len(actions) :]) or [str(reasons)])
    return reply


def _refusing(effects: Sequence[Effect], reasons: Sequence[dict[str, Any]]) -> list[str]:
    return [
        f"{name_of(effect)} ({reason.get('Code')}: {reason.get('Message', '')})"
        for effect, reason in zip(effects, reasons, strict=False)
        if reason.get("Code", "None") != "None"
    ]


def _fault_of(queue: str, effects: Sequence[Effect], error: StoreError | SettingsError) -> Exception:
    """The error of a transaction that cannot be made: our own rows were read just now, so an effect is at fault.

    A table or a right that is missing is nobody's message's fault: it is there when somebody has seen to it.
    """
    said = str(error.__cause__ or error)
    if any(words in said for words in TOO_LARGE):
        return TransactionTooLarge(queue, said)
    named = ", ".join(sorted({name_of(effect) for effect in effects}))
    if isinstance(error, AccessDenied):
        needed = sorted({f"dynamodb:{ACTIONS[effect.kind]} on table {effect.table!r}" for effect in effects})
        return TryLater(f"{named}: not allowed; the role needs {', '.join(needed)} (see HandlerPolicy)")
    if isinstance(error, TableNotFound):
        # AWS does not say which.
        is_one = len({effect.table for effect in effects}) == 1
        missing = "no table of that name" if is_one else "one of these is no table"
        return TryLater(f"{named}: {missing} in this region and account")
    return EffectRefused(queue, [f"{named}: {said}"])
