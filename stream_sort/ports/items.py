"""Port: the items table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.errors import StreamSortError
    from stream_sort.model.message import Message
    from stream_sort.model.records import Arrival, Cleared, Item, Look, Page, Tombstones


class ItemStore(Protocol):
    """The items table: one slot for each (queue, seq), written once."""

    def put(self, arrival: Arrival, now: float) -> Item | None:
        """Store a message if its slot is empty.

        1. None: it is stored, durably, as it is, with the time it arrived.
        2. Otherwise the item that was there first, unchanged.
        """

    def put_many(self, arrivals: Sequence[Arrival], now: float) -> list[Item | StreamSortError | None]:
        """Store messages with distinct slots; one answer for each, in order.

        3. Each answer is that of `put`, or the error that kept this one message from being stored.
        4. What keeps one message out keeps no other one out.
        """

    def skip(self, tombstones: Tombstones, now: float) -> tuple[int, ...]:
        """Put tombstones.

        5. Only into empty slots; answers the seqs that got one.
        """

    def keep_late(self, message: Message, now: float) -> Item | None:
        """Keep a message beside the tombstone in its slot.

        6. Only if none is kept there yet; answers the slot as it stands, tombstone included, None if it is empty.
        """

    def look(self, queue: str, after: int, limit: int) -> Look:
        """Show which seqs after `after` are taken, tombstones included.

        7. Ascending, at most `limit`, nothing left out between them; reads every write that was
           answered before the call.
        8. Empty only if nothing is stored after `after`.
        9. `seen` holds what the messages, and the tombstones, were stored with as `seen`.
        """

    def page(self, queue: str, after: int, through: int, limit: int) -> Page:
        """Read items of `(after, through]`.

        10. Ascending, nothing left out between them, as current as `look`; empty and not `more` only
            if nothing is stored in the range. It ends before an item that cannot be read; RowDamaged if that comes
            first.
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

        13. At most `limit`, and none outside the range; answers how many, 0 only if the range is empty.
        """

    def take_back(self, queue: str, seq: int) -> bool:
        """Empty a slot that was filled in vain.

        14. Only if whoever filled it knew (`seen`) that its seq was released before: then it is no message that
            anybody waits for. False otherwise.
        """

    def clear(self, queue: str, after: int, through: int, limit: int) -> Cleared:
        """Empty the lowest slots of `(after, through]`, tombstones included, but for those with late messages.

        15. At most `limit`, and none outside the range; a late message is kept, even if it comes meanwhile. It goes as
            far as it says: what is not kept up to there is gone.
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

    def taken(self, slots: Sequence[tuple[str, int]]) -> set[tuple[str, int]]:
        """Return those of many slots, each a queue and a seq, that hold a message or a tombstone.

        18. Each as current as `look`; a hundred for one request.
        """
