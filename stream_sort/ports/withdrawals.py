"""Port: messages that were taken out of their slots, kept beside them; it changes both tables at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.model.records import Cursor
    from stream_sort.model.withdrawal import Withdrawal


class WithdrawalStore(Protocol):
    """What was withdrawn from each queue, by number."""

    def withdraw(self, cursor: Cursor, wanted: Withdrawal) -> Withdrawal | None:
        """Take the message at `wanted.seq` out of its slot, and keep it with the number, the reason and the time.

        1. All of it or nothing; answers what is kept, None if nothing was done.
        2. Only if the slot holds a message and the slot before it is empty.
        3. Only if the position is below that empty slot, and the row's withdrawals are those of `cursor`.
        4. The row's withdrawals become `wanted.number`; nothing else of it changes.
        5. The message is kept as it was, and nothing that was kept before is replaced.
        """

    def page(self, queue: str, after: int, limit: int) -> Sequence[Withdrawal]:
        """Read the withdrawals of a queue whose numbers are above `after`.

        6. Ascending, at most `limit`, nothing left out between them, as current as a row; empty only if there are none.
        """

    def last(self, queue: str) -> int:
        """Name the highest number there is.

        7. As current as `page`; 0 only if nothing of the queue is kept.
        """
