"""What runs of this process could not record, because the store failed: kept, so that it is recorded once it can be.

Nobody else may rely on it. It ends with the process, and then a note that stands counts as the death it looks like.
"""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import TYPE_CHECKING

from stream_sort.errors import RowDamaged, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from stream_sort.core.consumption import Served
    from stream_sort.delivery import Delivery

# What is kept at most; beyond it the oldest is forgotten.
MOST = 1_000


class Unrecorded:
    """The runs that left something unrecorded, one a queue."""

    def __init__(self) -> None:
        self._kept: dict[str, Delivery] = {}
        self._lock = Lock()

    def keep(self, deliveries: Iterable[Delivery], has_time: Callable[[], bool]) -> None:
        """Keep what runs that are over could not record, after one more try: until one fails, or the time is over."""
        left = deque(delivery for delivery in deliveries if delivery.is_unrecorded)
        while left and has_time() and _is_recorded(left[0]):
            left.popleft()
        with self._lock:
            for delivery in left:
                delivery.retell()
                self._kept[delivery.served.queue] = delivery
            for queue in list(self._kept)[:-MOST]:
                del self._kept[queue]

    def record(self, queues: Collection[str], has_time: Callable[[], bool]) -> list[Served]:
        """Try again to record what is kept, in these queues first, until one fails or the time is over.

        Other queues are woken then. The one that failed is the last of its kind to be tried the next time. Returns what
        there is to tell of it.
        """
        served = []
        with self._lock:
            for queue in sorted(self._kept, key=lambda queue: queue not in queues):
                if not has_time():
                    break
                left = self._kept[queue]
                if not _is_recorded(left):
                    self._kept[queue] = self._kept.pop(queue)
                    break
                del self._kept[queue]
                served.append(left.served)
                if queue not in queues:
                    left.hand_over()
        return [one for one in served if one.delivered or one.dead or one.parked]

    def holds_up(self, delivery: Delivery) -> bool:
        """Whether a queue must wait, and its run ends at once: a note there is ours, and would be taken for a death."""
        if delivery.served.queue not in self._kept:
            return False
        delivery.stop(StoreUnavailable("what became of a message before could not be recorded yet"))
        return True


def _is_recorded(delivery: Delivery) -> bool:
    """Try once more; False if the store fails still, whatever it says. A row that cannot be read is left as it is."""
    try:
        delivery.record()
    except RowDamaged:
        return True
    except StoreError:
        return False
    except Exception:  # noqa: BLE001  # a bug of ours must not stop the other queues, nor this one for ever
        return True
    return True
