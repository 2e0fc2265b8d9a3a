"""stream_sort: store messages as they come, release every queue in order.

Importing this loads no SDK: each public name is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort import errors
from stream_sort.lazy_names import lazy_names

if TYPE_CHECKING:
    from stream_sort.consume.push import Pace
    from stream_sort.errors import *  # noqa: F403  # all of them are public
    from stream_sort.model.batch import Batch, Transaction
    from stream_sort.model.consumption import DeadLetter, Parked, Reset
    from stream_sort.model.gap_policy import GapPolicy
    from stream_sort.model.gaps import GapEvent
    from stream_sort.model.outcomes import Advance, LateMessage, PutResult, QueueState, Skip, Status
    from stream_sort.model.withdrawal import Withdrawal
    from stream_sort.ordered_consumer import OrderedConsumer
    from stream_sort.stream_sorter import StreamSorter
    from stream_sort.upkeep.sweep import Sweep
    from stream_sort.upkeep.sweeper import Sweeper

__version__ = "0.1.0"

__all__ = [
    "Advance",
    "Batch",
    "DeadLetter",
    "GapEvent",
    "GapPolicy",
    "LateMessage",
    "OrderedConsumer",
    "Pace",
    "Parked",
    "PutResult",
    "QueueState",
    "Reset",
    "Skip",
    "Status",
    "StreamSorter",
    "Sweep",
    "Sweeper",
    "Transaction",
    "Withdrawal",
    "__version__",
]
__all__ += errors.__all__

_MODULES = {
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
    "GapPolicy": "model.gap_policy",
    "Sweep": "upkeep.sweep",
    "Sweeper": "upkeep.sweeper",
}

# All others are errors.
__getattr__, __dir__ = lazy_names(__name__, dict.fromkeys(__all__, "errors") | _MODULES)
