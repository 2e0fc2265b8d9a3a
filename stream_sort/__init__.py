"""stream_sort: store messages as they come, release every queue in order.

Importing this loads no SDK: each public name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stream_sort.bootstrap import StreamSorter
    from stream_sort.consumer import Pace
    from stream_sort.core.batch import Batch, Transaction
    from stream_sort.core.consumption import DeadLetter, Parked
    from stream_sort.core.outcomes import Advance, LateMessage, PutResult, QueueState, Skip, Status
    from stream_sort.core.policy import GapPolicy
    from stream_sort.errors import (
        AccessDenied,
        CheckpointConflict,
        CredentialsError,
        CursorLost,
        EffectRefused,
        HandlerProblem,
        InvalidInput,
        InvalidMessage,
        InvalidQueue,
        LocalStackFailed,
        MessageTooLarge,
        MissingItems,
        NotParked,
        PartlyDone,
        QueueExists,
        QueueNotFound,
        SequenceConflict,
        SettingsError,
        StoreError,
        StoreMisconfigured,
        StoreUnavailable,
        StreamSortError,
        TableNotFound,
        TransactionTooLarge,
    )
    from stream_sort.ordered_consumer import OrderedConsumer
    from stream_sort.sweeper import Sweep, Sweeper

__version__ = "0.1.0"

__all__ = [
    "AccessDenied",
    "Advance",
    "Batch",
    "CheckpointConflict",
    "CredentialsError",
    "CursorLost",
    "DeadLetter",
    "EffectRefused",
    "GapPolicy",
    "HandlerProblem",
    "InvalidInput",
    "InvalidMessage",
    "InvalidQueue",
    "LateMessage",
    "LocalStackFailed",
    "MessageTooLarge",
    "MissingItems",
    "NotParked",
    "OrderedConsumer",
    "Pace",
    "Parked",
    "PartlyDone",
    "PutResult",
    "QueueExists",
    "QueueNotFound",
    "QueueState",
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
    "__version__",
]

_HOMES = {
    "StreamSorter": "bootstrap",
    "OrderedConsumer": "ordered_consumer",
    "Pace": "consumer",
    "Batch": "core.batch",
    "Transaction": "core.batch",
    "DeadLetter": "core.consumption",
    "Parked": "core.consumption",
    "Advance": "core.outcomes",
    "LateMessage": "core.outcomes",
    "PutResult": "core.outcomes",
    "QueueState": "core.outcomes",
    "Skip": "core.outcomes",
    "Status": "core.outcomes",
    "GapPolicy": "core.policy",
    "Sweep": "sweeper",
    "Sweeper": "sweeper",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = importlib.import_module(f"{__name__}.{_HOMES.get(name, 'errors')}")
    value = getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
