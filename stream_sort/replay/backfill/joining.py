"""The seamless join: a consumer's checkpoints are set where a replay ended, so that the live stream goes on there.

Before anything is replayed the consumer is registered and held where the replay begins: no trim passes it there. It is
let go by a join, or by whoever retires it.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from stream_sort.errors import JoinRefused, SettingsError, StoreUnavailable, Trimmed
from stream_sort.model.consumption import EARLIEST, Checkpoint, Subscription, check_consumer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.model.records import Cursor
    from stream_sort.ports import ControlStores
    from stream_sort.replay.backfill.ledger import Ledger
    from stream_sort.replay.engine.plan import JobPlan
    from stream_sort.replay.origins.access import TableAccess

BEGUN = "join.json"
# What the run of a checkpoint begins with that holds a place for a backfill.
HOLD = "backfill-"


def held_text(consumer: str) -> str:
    """Return what is said of a consumer that is held, and for whom nothing is joined yet."""
    return (
        f"consumer {consumer} is held where the replay begins, so that nothing is trimmed before it: run the same "
        f"command again to go on, or give it up: stream-sort consumers retire {consumer}"
    )


def begun_text(consumer: str) -> str:
    """Return what is said of a consumer whose join has begun."""
    return f"the join of consumer {consumer} had begun: run the same command again, which finishes it"


def lost_text(consumer: str) -> str:
    """Return what is said where nothing can be joined, whatever is done."""
    return (
        "something was trimmed that neither the replay nor the consumer would get, and it does not come back: give "
        f"the consumer up, if it is registered (stream-sort consumers retire {consumer}), and begin anew with another "
        "--checkpoint or --out"
    )


@dataclass(frozen=True)
class Join:
    """A consumer that is to go on live where a replay ends."""

    access: TableAccess
    control_table: str
    consumer: str

    def __post_init__(self) -> None:
        check_consumer(self.consumer)
        _ = self._control

    def check(self, plan: JobPlan, ledger: Ledger, *, begins: bool = True) -> None:
        """Raise if the consumer has begun in one of the plan's queues.

        SettingsError while a job `begins`, by when nothing was read; JoinRefused from then on.
        """
        there = self._registered()
        if there is not None and (there.start != EARLIEST or not there.ready):
            problem = (
                f"consumer {self.consumer!r} is registered to start at {there.start!r}; a replay joins a consumer "
                "that starts at the earliest message"
            )
            raise SettingsError(f"{problem}: take another --consumer") if begins else _refused(problem)
        if self.has_begun(ledger):
            return
        starts, hold = plan.starts(), _hold_of(ledger)
        found = self._control.checkpoints.of_queues(self.consumer, sorted(starts)).whole().values()
        begun = [
            one
            for one in found
            if not _is_held(one, starts[one.queue], hold)
            and one.run != plan.id
            and not (there is None and one.run.startswith(HOLD))
        ]
        if begun:
            raise self._begun(plan, begun, begins=begins)

    def hold(self, plan: JobPlan, ledger: Ledger, *, begins: bool = True) -> None:
        """Register the consumer and hold it where the plan begins: from now on no trim goes past it.

        StoreUnavailable if one did while a job `begins`: what it had planned to read is no longer all there. A hold of
        an earlier run of the same job is taken up, and one that another job has given up.
        """
        if self.has_begun(ledger):
            return
        free = self._registered() is None
        self._register()
        run, now = _hold_of(ledger), time.time()
        wanted = [Checkpoint(self.consumer, *start, run=run, committed_at=now) for start in plan.starts().items()]
        self.access.sorter.in_flight.map(lambda new: self._hold(new, plan, begins=begins, free=free), wanted)

    def has_begun(self, ledger: Ledger) -> bool:
        """Return True if checkpoints were, or are about to be, moved to where the replay ends."""
        return ledger.storage.exists(BEGUN)

    def is_let_go(self, ledger: Ledger) -> bool:
        """Return True if the consumer was retired after it was joined: it is held nowhere."""
        return self.has_begun(ledger) and self._registered() is None

    def join(self, plan: JobPlan, ledger: Ledger) -> int:
        """Move the consumer's checkpoint to the plan's end in each queue; returns in how many queues.

        What an earlier run of the same plan has set is left as it is: the consumer may have gone on from there.
        Trimmed, and nobody goes on, if something behind where it stands was trimmed while the consumer was not held.
        JoinRefused if the consumer was moved by others while it was held: now, and whenever it is tried again.
        """
        hold, starts, now = _hold_of(ledger), plan.starts(), time.time()
        wanted = [Checkpoint(self.consumer, *end, run=plan.id, committed_at=now) for end in plan.ends().items()]
        self.access.sorter.in_flight.map(self._check_seam, wanted)
        # From the next line on, a consumer that is past the end may have been joined there by a run that died.
        self.check(plan, ledger, begins=False)
        again = not ledger.storage.put_if_absent(BEGUN, plan.id.encode())
        self._register()

        def set_one(new: Checkpoint) -> Checkpoint | None:
            return self._set(new, Checkpoint(self.consumer, new.queue, starts[new.queue], run=hold), again=again)

        try:
            moved = [one for one in self.access.sorter.in_flight.map(set_one, wanted) if one is not None]
            # Another run of the same job may have joined meanwhile, and the consumer gone on.
            if moved and ledger.end() is None:
                raise self._begun(plan, moved, joined=len(wanted) - len(moved))
        except (JoinRefused, Trimmed):
            if not again:
                # Whoever runs it again is to find what was found now, not a join that is to be finished.
                ledger.storage.delete(BEGUN)
            raise
        return len(wanted)

    def _registered(self) -> Subscription | None:
        return self._control.subscriptions.readable_consumers().named(self.consumer)

    def _register(self) -> None:
        self._control.subscriptions.register(Subscription(self.consumer, EARLIEST, time.time()))

    def _hold(self, new: Checkpoint, plan: JobPlan, *, begins: bool, free: bool) -> None:
        commit = self._control.checkpoints.create(new)
        there = commit.checkpoint
        if there is not None and free and there.run.startswith(HOLD) and there.run != new.run:
            new = replace(new, version=there.version + 1)
            commit = self._control.checkpoints.commit(there, new)
            there = commit.checkpoint
        # Read after we are registered: a trim that did not see us had set its floor before.
        cursor = self.access.homes.of(new.queue).cursors.get(new.queue)
        if begins and cursor is not None and cursor.start > new.seq:
            raise StoreUnavailable(
                f"queue {new.queue!r} was trimmed up to seq {cursor.start} while the job began; nothing was replayed: "
                "run it again"
            )
        if there is None or commit.put(new) or there.run == plan.id:
            return
        if not _is_held(there, new.seq, new.run):
            raise self._begun(plan, [there], begins=begins)

    def _check_seam(self, new: Checkpoint) -> Cursor | None:
        cursor = self.access.homes.of(new.queue).cursors.get(new.queue)
        if cursor is not None and cursor.start > new.seq:
            # Read after the floor: one that was joined before, and is at work, may be past it by now.
            there = self._control.checkpoints.standing(self.consumer, new.queue).checkpoint
            stands = new.seq if there is None else max(new.seq, there.seq)
            if cursor.start > stands:
                raise Trimmed(new.queue, cursor.start, unread=stands + 1)
        return cursor

    def _set(self, new: Checkpoint, held: Checkpoint, *, again: bool) -> Checkpoint | None:
        """Move a checkpoint; what stands there instead if others have moved it."""
        there = self._control.checkpoints.standing(self.consumer, new.queue).checkpoint
        if there is None or _is_held(there, held.seq, held.run):
            cursor = self._check_seam(new)
            new = new if there is None else replace(new, version=there.version + 1)
            commit = (
                self._control.checkpoints.create(new) if there is None else self._control.checkpoints.commit(there, new)
            )
            there = commit.checkpoint
            if commit.put(new):
                if cursor is not None and cursor.position > new.seq:
                    # What was released during the replay woke nobody who could have taken it.
                    self.access.sorter.nudge(new.queue)
                return None
        if there is not None and there.run != new.run and not (again and _went_on(there, new)):
            return there
        # It may have been retired since it was joined, and passed by a trim before it was registered again.
        self._check_seam(new)
        return None

    def _begun(
        self, plan: JobPlan, there: Sequence[Checkpoint], *, begins: bool = False, joined: int = 0
    ) -> SettingsError | JoinRefused:
        first, name = there[0], self.consumer
        if first.run.startswith(HOLD):
            way = "run that one to its end with its own --checkpoint or --out, or" if begins else "give that one up"
            problem = f"consumer {name!r} is held by another backfill in queue {first.queue!r}: {way}"
            again = f" (stream-sort consumers retire {name}), and run this one again"
            return SettingsError(f"{problem} take another --consumer") if begins else _refused(problem + again)
        others = f" (and in {len(there) - 1} more)" if len(there) > 1 else ""
        problem = f"consumer {name!r} already has a checkpoint in queue {first.queue!r}, seq {first.seq}{others}"
        if begins:
            return SettingsError(f"{problem}; a replay would repeat what it has seen: take another --consumer")
        rest = f"; in {joined:,} other queues it goes on where the replay ended" if joined else ""
        return _refused(
            f"{problem}: others have moved it since this replay began, which ends at seq {plan.ends()[first.queue]} "
            f"there, and it goes on from where it stands{rest}. Places that are still held, if any, are let go by "
            f"stream-sort consumers retire {name}"
        )

    @cached_property
    def _control(self) -> ControlStores:
        return self.access.sorter.homes.only.control(self.control_table)


def _hold_of(ledger: Ledger) -> str:
    """Return the run that holds places for a job, by where its progress is kept: one that died left nothing else."""
    return HOLD + hashlib.sha256(ledger.storage.canonical.encode()).hexdigest()[:32]


def _refused(problem: str) -> JoinRefused:
    """Return the error for a job that has begun: its options are fixed by now."""
    return JoinRefused(
        f"not joined, what was replayed stays as it is: {problem}. To begin anew, take another --consumer and another "
        "--checkpoint or --out"
    )


def _went_on(there: Checkpoint, joined: Checkpoint) -> bool:
    """Return True if a checkpoint may be that of a consumer that was joined, and has gone on."""
    return there.seq >= joined.seq and not there.run.startswith(HOLD)


def _is_held(there: Checkpoint, start: int, hold: str) -> bool:
    """Return True if a checkpoint holds the place for this job, or was set by a trim where nothing was read yet."""
    return there.run == hold or (not there.run and not there.version and there.seq <= start)
