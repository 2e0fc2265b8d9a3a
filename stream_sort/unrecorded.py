"""What runs of this process could not record, because the store failed: kept, so that it is recorded once it can be.

Nobody else may rely on it. It ends with the process, and then a note that stands counts as the death it looks like.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.errors import StoreMisconfigured, StoreUnavailable

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

    def keep(self, deliveries: Iterable[Delivery], has_time: Callable[[], bool]) -> None:
        """Runs are over: what they could not record is tried once more while there is time, and then kept."""
        for delivery in deliveries:
            if delivery.is_unrecorded and not (has_time() and _is_recorded(delivery)):
                delivery.retell()
                self._kept[delivery.served.queue] = delivery
        for queue in list(self._kept)[:-MOST]:
            del self._kept[queue]

    def record(self, queues: Collection[str]) -> list[Served]:
        """Try again to record what is kept: in all these queues, and in others, which are woken then, until one fails.

        Returns what there is to tell of it.
        """
        served = []
        for queue in sorted(self._kept, key=lambda queue: queue not in queues):
            left = self._kept.pop(queue)
            if _is_recorded(left):
                served.append(left.served)
                if queue not in queues:
                    left.hand_over()
                continue
            self._kept[queue] = left
            if queue not in queues:
                break
        return [one for one in served if one.delivered or one.dead or one.parked]

    def holds_up(self, delivery: Delivery) -> bool:
        """Whether a queue must wait, and its run ends at once: a note there is ours, and would be taken for a death."""
        if delivery.served.queue not in self._kept:
            return False
        delivery.stop(StoreUnavailable("what became of a message before could not be recorded yet"))
        return True


def _is_recorded(delivery: Delivery) -> bool:
    """Try once more; False if the store fails still. What fails otherwise never can be, and is left as it is."""
    try:
        delivery.record()
    except (StoreUnavailable, StoreMisconfigured):
        return False
    except Exception:  # noqa: BLE001  # also a bug of ours must not stop the other queues
        return True
    return True
