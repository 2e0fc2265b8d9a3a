"""Service: read a range of what is released in a queue, in order, complete or an error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stream_sort.errors import MissingItems, Trimmed
from stream_sort.model.message import check_seq
from stream_sort.model.slots import expand

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.release.queues import Queues

PAGE = 1_000


@dataclass(frozen=True, slots=True)
class ReleasedRange:
    """Reads the messages of `(after, through]`; what cannot be read whole is refused before the first of them."""

    queues: Queues
    queue: str
    after: int
    through: int

    @classmethod
    def of(cls, queues: Queues, queue: str, after: int | None, through: int | None) -> ReleasedRange:
        """Return a range within what is released and there; by default all of it."""
        cursor = queues.known(queue)
        begin = cursor.start if after is None else max(check_seq(after, "after"), cursor.first_seq - 1)
        through = cursor.position if through is None else check_seq(through, "through")
        if begin < cursor.start or (after is None and cursor.first_seq <= through < cursor.start):
            raise Trimmed(queue, cursor.start)
        if through > max(begin, cursor.position):
            missing = range(max(begin, cursor.position) + 1, through + 1)
            advice = f"the queue is released through seq {cursor.position}; read up to there, or give no `through`"
            raise MissingItems(queue, [missing], advice=advice, problem="not released")
        return cls(queues, queue, begin, through)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the messages in order, tombstones left out; MissingItems at a hole, Trimmed if they go meanwhile."""
        try:
            yield from self._messages()
        except MissingItems as hole:
            start = self.queues.cursor(self.queue).start
            if hole.missing[0].start > start:
                raise
            raise Trimmed(self.queue, start) from hole

    def _messages(self) -> Iterator[dict[str, Any]]:
        queue, after, through = self.queue, self.after, self.through
        while after < through:
            page = self.queues.read(queue, after, through, PAGE)
            for entry in expand(page.slots, after, through):
                if entry.seq != after + 1:
                    raise MissingItems(queue, [range(after + 1, entry.seq)])
                after = entry.seq
                if not entry.is_tombstone:
                    yield entry.document
            if not page.more and after < through:
                raise MissingItems(queue, [range(after + 1, through + 1)])
