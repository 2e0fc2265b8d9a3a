"""Service: give up on missing seqs by hand, whatever the policy of their queue."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from stream_sort.errors import InvalidInput
from stream_sort.model.gap_policy import MOST_SKIPS
from stream_sort.model.message import check_seqs
from stream_sort.model.outcomes import Skip
from stream_sort.model.records import Tombstones

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stream_sort.release.queues import Queues

CHUNK = 100


@dataclass(frozen=True, slots=True)
class Skipper:
    """Puts tombstones into empty slots beyond the position, then advances."""

    queues: Queues

    def skip(self, queue: str, seqs: int | Iterable[int], reason: str) -> Skip:
        """Skip those of `seqs` that are missing; nothing at all if one of them is no seq, or they are too many."""
        wanted = check_seqs(seqs)
        if wanted[MOST_SKIPS:]:
            raise InvalidInput(
                f"more than {MOST_SKIPS:,} seqs at once. If a seq behind them is a mistake, such as a time, "
                f"withdraw({queue!r}, seq) takes that message out; else skip them in parts"
            )
        row = self.queues.row(queue)
        if row is None and wanted:
            # The row comes before the first slot that is filled, as for a message.
            row = self.queues.create(queue)
        position = self.queues.first_seq - 1 if row is None else row.position
        ahead = (seq for seq in wanted if seq > position)
        skipped: list[int] = []
        while chunk := tuple(dict.fromkeys(islice(ahead, CHUNK))):
            skipped += self.queues.items.skip(Tombstones(queue, chunk, reason, position), self.queues.clock())
        reach = self.queues.reach(queue)
        done = reach.advance
        # What was released and trimmed since our look is none that was given up.
        kept = tuple(seq for seq in skipped if seq > reach.cursor.start)
        return Skip(queue, done.old, done.new, done.released, skipped=kept)
