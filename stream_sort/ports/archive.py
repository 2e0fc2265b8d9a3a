"""Port: how far queues are archived."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class ArchiveMarks(Protocol):
    """The watermarks of one archive, kept in the control table: everything of a queue up to its watermark is in it."""

    def watermark(self, queue: str) -> int | None:
        """Read a watermark.

        1. As it stands after every write that was answered before the call; None only if there is none.
        """

    def watermarks(self, queues: Sequence[str]) -> dict[str, int]:
        """Read the watermarks of many queues.

        2. Those that exist, each as it stood after the call began.
        """

    def set_watermark(self, queue: str, old: int | None, new: int) -> bool:
        """Move a watermark.

        3. Only if it is `old` (None: absent), and never back; True if it is `new` after the call, by whomever.
        4. Other queues, other archives, consumers and checkpoints are untouched.
        """
