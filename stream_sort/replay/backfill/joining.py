"""The seamless join: a consumer's checkpoints are set where a replay ended, so that the live stream goes on there."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from stream_sort.core.consumption import EARLIEST, Checkpoint, Subscription, check_consumer
from stream_sort.errors import SettingsError

if TYPE_CHECKING:
    from stream_sort.ports import ControlStore
    from stream_sort.replay.access import TableAccess
    from stream_sort.replay.backfill.ledger import Ledger
    from stream_sort.replay.jobs.plan import Plan

BEGUN = "join.json"


@dataclass(frozen=True)
class Join:
    """A consumer that is to go on live where a replay ends."""

    access: TableAccess
    control_table: str
    consumer: str

    def __post_init__(self) -> None:
        check_consumer(self.consumer)
        _ = self._control

    def check(self, plan: Plan, ledger: Ledger) -> None:
        """Raise SettingsError, before anything is read, if the consumer has begun in one of the plan's queues."""
        for there in self._control.consumers():
            if there.name == self.consumer and (there.start != EARLIEST or not there.ready):
                raise SettingsError(
                    f"consumer {self.consumer!r} is registered to start at {there.start!r}; a replay joins a consumer "
                    "that starts at the earliest message: take another --consumer"
                )
        if ledger.storage.exists(BEGUN):
            return
        found = self._control.checkpoints(self.consumer, sorted(plan.ends()))
        for checkpoint in found.values():
            raise self._begun(checkpoint, len(found) - 1)

    def join(self, plan: Plan, ledger: Ledger) -> int:
        """Register the consumer with a checkpoint at the plan's end in each queue; returns in how many queues.

        What an earlier run of the same plan has set is left as it is: the consumer may have gone on from there.
        """
        run = plan.id
        again = not ledger.storage.put_if_absent(BEGUN, run.encode())
        self._control.register(Subscription(self.consumer, EARLIEST, time.time()))
        wanted = [Checkpoint(self.consumer, *end, run=run, committed_at=time.time()) for end in plan.ends().items()]
        self.access.sorter.in_flight.map(lambda new: self._set(new, again=again), wanted)
        return len(wanted)

    def _set(self, new: Checkpoint, *, again: bool) -> None:
        commit = self._control.create(new)
        there = commit.checkpoint
        if not commit.put(new) and there is not None and not (again and there.seq >= new.seq):
            raise self._begun(there, 0)
        cursor = self.access.sorter.stores.cursors.get(new.queue)
        if cursor is not None and cursor.position > new.seq:
            # What was released during the replay woke nobody who could have taken it.
            self.access.sorter.nudge(new.queue)

    def _begun(self, there: Checkpoint, more: int) -> SettingsError:
        others = f" (and in {more} more)" if more else ""
        return SettingsError(
            f"consumer {self.consumer!r} already has a checkpoint in queue {there.queue!r}, seq {there.seq}{others}; "
            "a replay would repeat what it has seen: take another --consumer"
        )

    @cached_property
    def _control(self) -> ControlStore:
        return self.access.sorter.stores.control(self.control_table)
