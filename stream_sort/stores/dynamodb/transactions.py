"""A write of ours together with a handler's effects: all or none, and whose fault it is if none."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ParamValidationError

from stream_sort.aws.errors import (
    DENIED_CODES,
    INVALID,
    ITEM_TOO_LARGE,
    REFUSED,
    TRANSIENT_REASONS,
    code_of,
    said_of,
)
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
from stream_sort.stores.effects import actions_of, name_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.model.batch import Effect
    from stream_sort.stores.dynamodb.calls import Calls, Reply

# What IAM calls the parts of a transaction.
ACTIONS = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}
# Within ValidationException only, and from the beginning of its sentence: fields may have any name.
TOO_LARGE = re.compile(
    rf"{ITEM_TOO_LARGE.pattern}|Transaction request cannot include multiple operations on one item"
    r"|(?:The )?(?:aggregate|total) size of |Transaction (?:request )?(?:size|exceeds)"
    r"|\d+ validation errors? detected: Value .* at 'transactItems' failed to satisfy constraint: "
    r"Member must have length less than or equal to",
    re.IGNORECASE,
)
# What DynamoDB says of a request that is wrong in itself. All other codes are of tables, rights or AWS: they pass,
# or somebody sees to them, and no message is given up for them.
OWN_FAULTS = frozenset(
    {
        INVALID,
        "IdempotentParameterMismatchException",
        "ItemCollectionSizeLimitExceededException",
        "RequestEntityTooLarge",
        "RequestEntityTooLargeException",
        "SerializationException",
    }
)
NO_TABLE = "ResourceNotFound"
# The same of one part of a transaction, by the reasons for which it was cancelled.
OWN_REASONS = frozenset({REFUSED, "DuplicateItem", "ItemCollectionSizeLimitExceeded", "ValidationError", INVALID})


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
        reply = calls.across("transact_write_items", table, TransactItems=wanted, ClientRequestToken=token)
    except (StoreUnavailable, CredentialsError):
        raise
    except (StoreError, SettingsError) as error:
        if not effects:
            raise
        # From what AWS said: our own error names the control table, which is not the one at fault.
        raise _fault_of(queue, effects, error) from error.__cause__
    reasons = reply.body.get("CancellationReasons", [])
    if reply.refused and (not reasons or reasons[0].get("Code") != REFUSED):
        raise _cancelled(table, queue, effects, reasons)
    return reply


def _cancelled(table: str, queue: str, effects: Sequence[Effect], reasons: Sequence[dict[str, Any]]) -> Exception:
    """Return the error of a transaction that was cancelled, though the condition of its first action held."""
    codes = {reason.get("Code", "None") for reason in reasons}
    if not reasons and effects:
        return TryLater(f"cancelled, and AWS does not say why: {', '.join(map(name_of, effects))}")
    if not effects and REFUSED not in codes:
        return StoreError(f"TransactWriteItems on table {table!r} was cancelled: {reasons}", table=table)
    refusing = _refusing(effects, reasons[len(reasons) - len(effects) :]) or [str(reasons)]
    if codes & (DENIED_CODES | {NO_TABLE}):
        return TryLater(f"not allowed, or no table of that name: {', '.join(refusing)} (see HandlerPolicy)")
    if unknown := codes - OWN_REASONS - TRANSIENT_REASONS:
        return TryLater(f"cancelled for {', '.join(sorted(unknown))}: {', '.join(refusing)}")
    return EffectRefused(queue, refusing)


def _refusing(effects: Sequence[Effect], reasons: Sequence[dict[str, Any]]) -> list[str]:
    return [
        f"{name_of(effect)} ({reason.get('Code')}: {reason.get('Message', '')})"
        for effect, reason in zip(effects, reasons, strict=False)
        if reason.get("Code", "None") != "None"
    ]


def _fault_of(queue: str, effects: Sequence[Effect], error: StoreError | SettingsError) -> Exception:
    """Return the error of a transaction that cannot be made: our own rows were read just now, so an effect is at fault.

    A table or a right that is missing is nobody's message's fault: it is there when somebody has seen to it.
    """
    cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
    code, said = code_of(cause), str(cause)
    named = ", ".join(sorted({name_of(effect) for effect in effects}))
    if isinstance(error, AccessDenied):
        needed = sorted({f"dynamodb:{ACTIONS[effect.kind]} on table {effect.table!r}" for effect in effects})
        return TryLater(f"{named}: not allowed; the role needs {', '.join(needed)} (see HandlerPolicy)")
    if isinstance(error, TableNotFound):
        # AWS does not say which.
        is_one = len({effect.table for effect in effects}) == 1
        missing = "no table of that name" if is_one else "one of these is no table"
        return TryLater(f"{named}: {missing} in this region and account")
    # What botocore finds wrong has no code: a request that cannot be one is the message's, all else is of this process.
    if code not in OWN_FAULTS and not isinstance(cause, ParamValidationError):
        return TryLater(f"{named}: {said}")
    if code == INVALID and TOO_LARGE.match(said_of(cause)):
        return TransactionTooLarge(queue, said)
    return EffectRefused(queue, [f"{named}: {said}"])
