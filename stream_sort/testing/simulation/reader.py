"""Consumers for the writers' simulation: one in few lines, and ours with a handler that does nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stream_sort.concurrency import InFlight
from stream_sort.consume.consumer import Consumer, Pace
from stream_sort.consume.context import ConsumerContext, DeliveryTerms
from stream_sort.consume.nudger import Nudger
from stream_sort.consume.registration import Registration
from stream_sort.errors import MissingItems
from stream_sort.model.consumption import EARLIEST, Checkpoint, Subscription, first_checkpoint
from stream_sort.model.ordering import run_through

if TYPE_CHECKING:
    from stream_sort.ports import Clock
    from stream_sort.sorter import Sorter

CONTROL = "control"
READER = "billing"
CHUNK = 2


def consume(sorter: Sorter, queue: str, name: str) -> int:
    """Read a few messages that are due to a consumer; returns how many. A hole raises MissingItems."""
    control = sorter.stores.control(CONTROL)
    control.register(Subscription(name, EARLIEST, 0.0))
    standing = control.standing(name, queue, 0)
    if standing.cursor is None:
        # Raises if the row is lost, and not only absent as yet.
        sorter.position(queue)
        return 0
    position, row = standing.cursor.position, standing.checkpoint
    if row is None and position > first_checkpoint(EARLIEST, standing.cursor):
        row = control.create(Checkpoint(name, queue, first_checkpoint(EARLIEST, standing.cursor))).checkpoint
    if row is None or position <= row.seq:
        return 0
    found = sorter.stores.items.page(queue, row.seq, position, CHUNK).items
    end = run_through(row.seq, [item.seq for item in found])
    if end == row.seq:
        if control.standing(name, queue).checkpoint != row:
            # Overtaken: another run read it, and then it was trimmed.
            return 0
        raise MissingItems(queue, [range(end + 1, end + 2)])
    done = control.commit(row, replace(row, seq=end, version=row.version + 1))
    return end - row.seq if done.won else 0


def deliver(sorter: Sorter, clock: Clock, queue: str, run: str) -> int:
    """Let a run of our own consumer, under a name of its own, catch up; returns how many messages were delivered."""
    control = sorter.stores.control(CONTROL)
    terms = DeliveryTerms(READER, batch_size=CHUNK)
    desk = ConsumerContext(terms, sorter.queues, control, lambda _: None, Nudger(sorter.queues), clock, lambda: run)
    registrar = Registration(control, sorter.stores.cursors, clock, InFlight(1))
    return Consumer(desk, registrar, Pace(sleep=lambda _: None, monotonic=lambda: 0.0)).catch_up(queue)
