"""Service: what all other services need of queues: their rows, to release what can be, to wake their consumers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.errors import QueueNotFound
from stream_sort.model.message import check_queue
from stream_sort.model.records import Cursor, Page
from stream_sort.release.lost_cursor import find_row

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.model.gap_policy import GapPolicy
    from stream_sort.ports import Clock, CursorStore, ItemStore
    from stream_sort.ports.in_flight import InFlight
    from stream_sort.release.advancer import Advancer, Reach


@dataclass(frozen=True, slots=True)
class Queues:
    """The queues of one sorter: their tables, what they have in common, and the clock that all go by.

    `gap_policy` is that of queues without one of their own; `deadline` is how long what fails is retried, in seconds.
    """

    items: ItemStore
    cursors: CursorStore
    advancer: Advancer
    clock: Clock
    in_flight: InFlight
    gap_policy: GapPolicy
    first_seq: int
    deadline: float

    def row(self, queue: str) -> Cursor | None:
        """Return the row of a queue, None if there never was one; CursorLost if it is gone."""
        return find_row(self.items, self.cursors, check_queue(queue))

    def cursor(self, queue: str) -> Cursor:
        """Return the row of a queue, or how one begins."""
        return self.row(queue) or self.unbegun(queue)

    def known(self, queue: str) -> Cursor:
        """Return the row of a queue, or how one begins that others wrote to; QueueNotFound if it holds nothing."""
        row = self.row(queue)
        if row is None and self.items.highest(queue) is None:
            raise QueueNotFound(queue)
        return row or self.unbegun(queue)

    def unbegun(self, queue: str) -> Cursor:
        """Return the row of a queue in which nothing is released."""
        return Cursor(queue, self.first_seq - 1, self.first_seq)

    def create(self, queue: str) -> Cursor:
        """Make the row of a queue that never had one; return the row that stands, whoever made it."""
        return self.cursors.create(self.unbegun(queue)).cursor

    def set_policy(self, queue: str, policy: GapPolicy) -> None:
        """Keep a gap policy on the row of a queue, begun or not."""
        if not self.cursors.set_policy(check_queue(queue), policy):
            self.reach(queue)
            self.create(queue)
            self.cursors.set_policy(queue, policy)

    def policy(self, cursor: Cursor) -> GapPolicy:
        """Return the gap policy that a queue has."""
        return cursor.policy or self.gap_policy

    def reach(self, queue: str, *, is_over: Callable[[], bool] | None = None) -> Reach:
        """Advance a queue; `is_over` is asked before each step: once it is, the queue is marked for the sweep."""
        return self.advancer.advance(check_queue(queue), is_over=is_over)

    def read(self, queue: str, after: int, through: int, limit: int) -> Page:
        """Read the slots that fill seqs of `(after, through]`; `after` may lie inside of one, as a checkpoint may.

        Where the page begins beyond `after + 1`, the slot that fills that seq is asked for: the one further request
        comes where a reader would else find a hole.
        """
        page = self.items.page(queue, after, through, limit)
        if after >= through or (page.slots and page.slots[0].first == after + 1):
            return page
        held = self.items.holding(queue, after + 1)
        return page if held is None else Page((held, *page.slots), page.more)

    def nudge(self, queue: str) -> None:
        """Touch the row of a queue, so that the stream carries it again; QueueNotFound if it never was."""
        while not self.cursors.nudge(check_queue(queue), self.clock()):
            if self.row(queue) is None:
                raise QueueNotFound(queue)
