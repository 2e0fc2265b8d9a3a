"""What runs of this process could not record, because the store failed: kept, so that it is recorded once it can be.

Nobody else may rely on it. It ends with the process, and then a note that stands counts as the death it looks like.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from stream_sort.errors import RowDamaged, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from stream_sort.consume.delivery import Delivery
    from stream_sort.model.consumption import Served

# What is kept at most; beyond it the oldest is forgotten.
MOST = 1_000
# How many tries to record a queue may meet a bug of ours: while they last it gets no further here, and then it does.
MOST_BUGS = 10


@dataclass(slots=True)
class Left:
    """A run that left something unrecorded; `bugs` counts the tries to record it that met a bug of ours."""

    delivery: Delivery
    bugs: int = 0

    def is_over(self) -> bool:
        """Try once more, and return True if nothing is left; raise StoreError if the store fails still.

        False if a bug of ours comes up, until it did so too often. A row that cannot be read is left as it is.
        """
        try:
            self.delivery.record()
        except RowDamaged:
            return True
        except StoreError:
            raise
        except Exception:  # noqa: BLE001  # it must not stop the other queues, nor this one for ever
            self.bugs += 1
            return self.bugs >= MOST_BUGS
        return True


class Unrecorded:
    """The runs that left something unrecorded, one a queue."""

    def __init__(self) -> None:
        self._kept: dict[str, Left] = {}
        self._lock = Lock()

    def keep(self, deliveries: Iterable[Delivery], has_time: Callable[[], bool]) -> None:
        """Keep what runs that are over could not record, after one more try of each.

        There are no more tries once the store fails, or the time is over.
        """
        left = {delivery.queue: Left(delivery) for delivery in deliveries if delivery.is_unrecorded}
        with suppress(StoreError):
            for queue in list(left):
                if not has_time():
                    break
                if left[queue].is_over():
                    del left[queue]
        with self._lock:
            for queue, one in left.items():
                one.delivery.begin_report()
                self._kept[queue] = one
            for queue in list(self._kept)[:-MOST]:
                del self._kept[queue]

    def record(self, queues: Collection[str], has_time: Callable[[], bool]) -> list[Served]:
        """Try again to record what is kept, in these queues first, until the store fails or the time is over.

        Other queues are woken then. What is tried is the last of its kind to be tried the next time. Return what there
        is to report of it.
        """
        served = []
        with self._lock, suppress(StoreError):
            for queue in sorted(self._kept, key=lambda queue: queue not in queues):
                if not has_time():
                    break
                left = self._kept[queue] = self._kept.pop(queue)
                if not left.is_over():
                    continue
                del self._kept[queue]
                served.append(left.delivery.served)
                if queue not in queues:
                    left.delivery.hand_over()
        return [one for one in served if one.delivered or one.dead or one.parked]

    def holds_up(self, delivery: Delivery) -> bool:
        """Return True if a queue must wait, and end its run: a note there is ours, and would be taken for a death."""
        if delivery.queue not in self._kept:
            return False
        delivery.stop(StoreUnavailable("what became of a message before could not be recorded yet"))
        return True
