"""Port: the items table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.errors import StreamSortError
    from stream_sort.model.message import Message
    from stream_sort.model.records import Arrival, Cleared, Look, Page, TakenSlots, Tombstones
    from stream_sort.model.slots import Entry, Slot


class ItemStore(Protocol):
    """The items table: slots that are written once. Each begins at its key and fills the seqs `first` to `last`.

    A `limit` counts slots.
    """

    def put(self, arrival: Arrival, now: float) -> Entry | None:
        """Store a message if its slot is empty.

        1. None: it is stored, durably, as it is, with the time it arrived.
        2. Otherwise the entry that was there first, unchanged.
        """

    def put_many(self, arrivals: Sequence[Arrival], now: float) -> list[Entry | StreamSortError | None]:
        """Store messages with distinct slots; one answer for each, in order.

        3. Each answer is that of `put`, or the error that kept this one message from being stored.
        4. What keeps one message out keeps no other one out.
        """

    def skip(self, tombstones: Tombstones, now: float) -> tuple[int, ...]:
        """Put tombstones.

        5. Only into empty slots; answers the seqs that got one, also those of which a reply was lost on the way.
        """

    def keep_late(self, message: Message, now: float) -> Entry | None:
        """Keep a message beside the tombstone in its slot.

        6. Only if none is kept there yet; answers the entry as it stands, None if the slot is empty.
        """

    def look(self, queue: str, after: int, limit: int) -> Look:
        """Show which seqs are filled by the slots that begin after `after`, tombstones included.

        7. Ascending, at most `limit` slots, nothing left out between them; reads every write that was
           answered before the call.
        8. Empty only if nothing is stored after `after`.
        9. `seen` holds what the messages, and the tombstones, were stored with as `seen`.
        """

    def page(self, queue: str, after: int, through: int, limit: int) -> Page:
        """Read the slots that begin in `(after, through]`.

        10. Ascending, nothing left out between them, as current as `look`; empty and not `more` only
            if none begins in the range. It ends before a slot that cannot be read; RowDamaged if that comes first.
        """

    def highest(self, queue: str) -> int | None:
        """Name the highest stored seq.

        11. As current as `look`; None only if the queue holds nothing.
        """

    def tombstones(self, queue: str, limit: int) -> Page:
        """Find the tombstones among the highest `limit` slots.

        12. Descending; `more` says that there are slots below those that were searched.
        """

    def delete(self, queue: str, after: int, through: int, limit: int) -> int:
        """Empty the lowest slots of `(after, through]`, tombstones included.

        13. At most `limit`, and none that fills a seq outside the range; answers how many seqs went, 0 only if there is
            no such slot.
        """

    def take_back(self, queue: str, seq: int) -> bool:
        """Empty a slot that was filled in vain.

        14. Only if whoever filled it knew (`seen`) that its seq was released before: then it is no message that
            anybody waits for. False otherwise.
        """

    def clear(self, queue: str, after: int, through: int, limit: int) -> Cleared:
        """Empty the lowest slots of `(after, through]`, tombstones included, but for those with late messages.

        15. At most `limit`, and none that fills a seq outside the range; a late message is kept, even if it comes
            meanwhile. It goes as far as it says: what is not kept up to there is gone.
        """

    def arrivals(self, queue: str, after: int, limit: int) -> Page:
        """Show when what is stored after `after` arrived, and what is a tombstone; documents are left out.

        16. Ascending, at most `limit`, nothing left out between them, as current as `look`; whatever a document holds
            cannot make it fail.
        """

    def arrivals_below(self, queue: str, before: int, limit: int) -> Page:
        """Show the same of what is stored below `before`, the highest first, and what each was stored with as `seen`.

        17. Descending, otherwise as `arrivals`; without `more`, nothing is stored below the last one.
        """

    def taken(self, slots: Sequence[tuple[str, int]]) -> TakenSlots:
        """Return those of many places, each a queue and a seq, at which a slot begins.

        18. Each as current as `look`; a hundred for one request. One that got no answer is named by its queue, and
            hides no other.
        """

    def holding(self, queue: str, seq: int) -> Slot | None:
        """Return the slot that fills a seq, wherever it begins.

        19. As current as `look`, for one request; None only if no slot fills it.
        """
