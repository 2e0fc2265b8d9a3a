"""Port: how much of queues is archived."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Archived:
    """What an archive has of a queue: everything after `began` up to the watermark. None: it is not known."""

    watermark: int
    began: int | None = None


class ArchiveMarks(Protocol):
    """The watermarks of one archive, kept in the control table: everything of a queue up to its watermark is in it.

    That is, from where the archive began; what was trimmed before is in none, or in another one.
    """

    def watermark(self, queue: str) -> int | None:
        """Read a watermark.

        1. As it stands after every write that was answered before the call; None only if there is none.
        """

    def archived(self, queues: Sequence[str]) -> dict[str, Archived]:
        """Read the watermarks of many queues, and where the archive began.

        2. Those that exist, each as it stood after the call began.
        """

    def elsewhere(self, queue: str) -> dict[str, Archived]:
        """Look for other archives of a queue.

        6. Every one that has a watermark since before the call, by its address.
        """

    def set_watermark(self, queue: str, old: int | None, new: int, *, began: int | None = None) -> bool:
        """Move a watermark, and say where the archive began.

        3. Only if it is `old` (None: absent), and never back; True if it is `new` after the call, by whomever.
        4. Other queues, other archives, consumers and checkpoints are untouched.
        5. `began` stands with the watermark that was moved, in the place of what stood there.
        """
