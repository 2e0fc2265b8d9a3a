"""stream_sort: store messages as they come, release every queue in order.

Importing this loads no SDK: each public name is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.lazy_names import lazy_names

if TYPE_CHECKING:
    from stream_sort.consume.push import Pace
    from stream_sort.errors import (
        AccessDenied,
        ArchiveDamaged,
        CheckpointConflict,
        ConsumerActive,
        ConsumerNotFound,
        CredentialsError,
        CursorLost,
        EffectRefused,
        ExportDamaged,
        FileMissing,
        FunctionFailed,
        HandlerProblem,
        InternalError,
        InvalidInput,
        InvalidMessage,
        InvalidQueue,
        JoinRefused,
        LocalStackFailed,
        MessageTooLarge,
        MissingItems,
        NotConsumed,
        NotParked,
        NotReleased,
        NotWithdrawn,
        OtherKeys,
        PartlyDone,
        PortTaken,
        QueueDamaged,
        QueueExists,
        QueueNotFound,
        ReplayFailed,
        RowDamaged,
        SequenceConflict,
        SettingsError,
        StoreError,
        StoreMisconfigured,
        StoreUnavailable,
        StreamSortError,
        TableNotFound,
        TransactionTooLarge,
        Trimmed,
        TryLater,
    )
    from stream_sort.model.batch import Batch, Transaction
    from stream_sort.model.consumption import DeadLetter, Parked, Reset
    from stream_sort.model.gaps import GapEvent
    from stream_sort.model.outcomes import Advance, LateMessage, PutResult, QueueState, Skip, Status
    from stream_sort.model.policy import GapPolicy
    from stream_sort.model.withdrawal import Withdrawal
    from stream_sort.ordered_consumer import OrderedConsumer
    from stream_sort.stream_sorter import StreamSorter
    from stream_sort.upkeep.sweep import Sweep
    from stream_sort.upkeep.sweeper import Sweeper

__version__ = "0.1.0"

__all__ = [
    "AccessDenied",
    "Advance",
    "ArchiveDamaged",
    "Batch",
    "CheckpointConflict",
    "ConsumerActive",
    "ConsumerNotFound",
    "CredentialsError",
    "CursorLost",
    "DeadLetter",
    "EffectRefused",
    "ExportDamaged",
    "FileMissing",
    "FunctionFailed",
    "GapEvent",
    "GapPolicy",
    "HandlerProblem",
    "InternalError",
    "InvalidInput",
    "InvalidMessage",
    "InvalidQueue",
    "JoinRefused",
    "LateMessage",
    "LocalStackFailed",
    "MessageTooLarge",
    "MissingItems",
    "NotConsumed",
    "NotParked",
    "NotReleased",
    "NotWithdrawn",
    "OrderedConsumer",
    "OtherKeys",
    "Pace",
    "Parked",
    "PartlyDone",
    "PortTaken",
    "PutResult",
    "QueueDamaged",
    "QueueExists",
    "QueueNotFound",
    "QueueState",
    "ReplayFailed",
    "Reset",
    "RowDamaged",
    "SequenceConflict",
    "SettingsError",
    "Skip",
    "Status",
    "StoreError",
    "StoreMisconfigured",
    "StoreUnavailable",
    "StreamSortError",
    "StreamSorter",
    "Sweep",
    "Sweeper",
    "TableNotFound",
    "Transaction",
    "TransactionTooLarge",
    "Trimmed",
    "TryLater",
    "Withdrawal",
    "__version__",
]

_HOMES = {
    "StreamSorter": "stream_sorter",
    "OrderedConsumer": "ordered_consumer",
    "Pace": "consume.push",
    "Batch": "model.batch",
    "Transaction": "model.batch",
    "DeadLetter": "model.consumption",
    "Parked": "model.consumption",
    "Reset": "model.consumption",
    "Advance": "model.outcomes",
    "LateMessage": "model.outcomes",
    "PutResult": "model.outcomes",
    "QueueState": "model.outcomes",
    "Skip": "model.outcomes",
    "Status": "model.outcomes",
    "Withdrawal": "model.withdrawal",
    "GapEvent": "model.gaps",
    "GapPolicy": "model.policy",
    "Sweep": "upkeep.sweep",
    "Sweeper": "upkeep.sweeper",
}

# All others are errors.
__getattr__, __dir__ = lazy_names(__name__, dict.fromkeys(__all__, "errors") | _HOMES)
