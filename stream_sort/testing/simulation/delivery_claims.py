"""Claims on deliveries and checkpoints: I3, I4, and I5, I8 and I9 of consumers."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from stream_sort.consume.registration import TRUSTED
from stream_sort.errors import CursorLost, InternalError, Trimmed, TryLater
from stream_sort.model.consumption import first_checkpoint
from stream_sort.model.retries import LAST_ERROR, is_crash_guard
from stream_sort.testing.simulation.failure import InvariantBroken

if TYPE_CHECKING:
    from stream_sort.consume.context import DeliveryTerms
    from stream_sort.model.batch import Batch
    from stream_sort.model.consumption import Checkpoint, DeadLetter
    from stream_sort.model.records import Cursor
    from stream_sort.testing.simulation.operations import Attempt
    from stream_sort.testing.simulation.oracle import Oracle

Place = tuple[str, str]
# Operations that deliver, and so bring a retired consumer back.
DELIVERING = frozenset({"process", "catch_up", "redrive"})


def names_outage(error: str) -> bool:
    """Return True if an error says that no message is to blame; what came before it says nothing of it."""
    return TryLater.__name__ in error.partition(LAST_ERROR)[0]


class DeliveryClaims:
    """Remembers every delivery and every checkpoint, and raises InvariantBroken when one is not allowed."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._world = oracle.world
        self._control = oracle.world.control
        self._rows: defaultdict[Place, list[Checkpoint]] = defaultdict(list)
        self._given: dict[Place, int] = {}
        self._done: defaultdict[Place, set[int]] = defaultdict(set)
        self._effects = 0
        self._batches: dict[int, tuple[str, Batch]] = {}
        self._applied: Counter[tuple[str, str, int]] = Counter()
        self._retired: dict[str, float] = {}
        self._ever_ready: set[str] = set()

    def checkpoints(self) -> dict[Place, int]:
        """Return how many checkpoints each (consumer, queue) had so far."""
        return {place: len(self._rows[place]) for place in self._control.checkpoints}

    def check_delivery(self, consumer: str, batch: Batch, attempt: Attempt) -> None:
        """I3, and I5: who delivers is registered, so that trims wait for it; until a minute after it was retired."""
        row = self._control.checkpoints.get((consumer, batch.queue))
        is_redriven = attempt.operation.name == "redrive" and row is not None and batch.through <= row.seq
        # A dead letter on its own stands behind the checkpoint.
        if not is_redriven:
            self._check_batch(consumer, batch, attempt.checkpoints.get((consumer, batch.queue), 0))
        since = self._retired.get(consumer)
        if since is not None and attempt.began - since >= TRUSTED:
            raise InvariantBroken("I5", f"{consumer} delivers, and is retired since {since}: no trim waits for it")

    def _check_batch(self, consumer: str, batch: Batch, since: int) -> None:
        """I3: a run starts after a checkpoint that stood since it began, and leaves nothing out."""
        place = (consumer, batch.queue)
        stood = {row.seq for row in self._rows[place][max(0, since - 1) :]}
        if batch.after not in stood:
            raise InvariantBroken(
                "I3", f"{place}: a batch starts after {batch.after}; the checkpoint was {sorted(stood)}"
            )
        slots, cursor = self._world.tables.queue(batch.queue).entries(), self._world.tables.cursors.get(batch.queue)
        covered = range(batch.after + 1, batch.through + 1)
        # A tombstone may have been trimmed since it was read.
        gone = {seq for seq in covered if cursor is not None and seq <= cursor.start and seq not in slots}
        wanted = [
            seq for seq in covered if not self._is_tombstone(slots, seq) and seq not in gone.difference(batch.seqs)
        ]
        if list(batch.seqs) != wanted or [message["seq"] for message in batch.messages] != wanted:
            raise InvariantBroken("I3", f"{place}: given {batch.seqs} of {wanted}")
        position = self._world.position(batch.queue)
        if position is not None and batch.through > position:
            raise InvariantBroken("I3", f"{place}: given seqs up to {batch.through}, released is {position}")
        before = self._given.get(place, self._rows[place][0].seq)
        if batch.after > before:
            raise InvariantBroken("I3", f"{place}: given seqs after {batch.after}, before it got as far as {before}")
        self._given[place] = max(before, batch.through)

    def check_registered(self, operation: str) -> None:
        """Note who is retired; I5: only a run that delivers brings a consumer back, for which trims then wait."""
        marked = {name for name, one in self._control.consumers.items() if one.is_retired}
        back = self._retired.keys() - marked
        if back and operation not in DELIVERING:
            raise InvariantBroken("I5", f"{operation} brought {sorted(back)} back, which delivers nothing")
        self._retired = {name: self._retired.get(name, self._world.now) for name in marked}
        self._oracle.retired |= marked
        self._ever_ready |= {name for name, one in self._control.consumers.items() if one.ready}

    def note_done(self, consumer: str, batch: Batch, through: int) -> None:
        """Note which messages a handler did, and which effects it wants for them."""
        self._done[(consumer, batch.queue)].update(seq for seq in batch.seqs if seq <= through)
        self._batches |= {id(effect): (consumer, batch) for effect in batch.transaction.effects}

    def check_checkpoint(self, consumer: str, queue: str) -> None:
        """I3: a checkpoint never goes back and passes nothing that was not done, skipped or set aside; I4."""
        row = self._control.checkpoints.get((consumer, queue))
        rows = self._rows[(consumer, queue)]
        if row is None or (rows and rows[-1] is row):
            return
        if rows:
            self._check_move(rows[-1], row)
        else:
            self._check_first(row)
        rows.append(row)
        place = (consumer, queue)
        self._given[place] = max(self._given.get(place, row.seq), row.seq)
        self.check_effects()

    def check_blame(self, row: Checkpoint, dead: DeadLetter | None) -> None:
        """I8: no message is set aside, and no queue parked for good, for what is not the message's fault.

        I5, I9: a queue is called damaged only if it is, and a bug ours only where there was one.
        """
        parked = row.parked
        if parked is not None and names_outage(parked.error) and parked.next_try is None:
            raise InvariantBroken("I8", f"an outage parked a queue for good: {parked}")
        if dead is not None and names_outage(dead.error) and dead.discarded is None:
            raise InvariantBroken("I8", f"a message was set aside for an outage: {dead}")
        if parked is None:
            return
        is_lost = row.queue in self._oracle.lost and parked.error.startswith(CursorLost.__name__)
        is_trimmed = row.consumer in self._oracle.retired and parked.error.startswith(Trimmed.__name__)
        if parked.damaged and not is_lost and not is_trimmed:
            raise InvariantBroken("I5", f"{row.consumer} calls a queue damaged that is not: {parked}")
        if parked.error.startswith(InternalError.__name__) and row.queue not in self._oracle.met_bugs:
            raise InvariantBroken("I9", f"not a named error: {parked.error}")

    def check_rest(self, terms: DeliveryTerms, queue: str, *, transactional: bool) -> None:
        """I2 to I4 and I8 for consumers: all that is released is done, and happened once."""
        consumer, cursor = terms.name, self._world.tables.cursors.get(queue)
        row = self._control.checkpoints.get((consumer, queue))
        known = self._control.consumers.get(consumer)
        if known is None or known.is_retired:
            # It never ran, so nobody can know of it; the sweep of the app introduces its consumer for that reason.
            return
        if cursor is None or (row is None and cursor.position <= first_checkpoint(terms.start, cursor)):
            return
        if row is None and not known.ready:
            # Whoever set its first checkpoints died: where it starts is decided when it is woken for the next time.
            return
        position = cursor.position
        if row is None:
            raise InvariantBroken("I8", f"{consumer} never looked at queue {queue!r}, which is at {position}")
        if row.seq < position and row.parked is None:
            raise InvariantBroken("I8", f"{consumer} is at {row.seq} of queue {queue!r}, which is at {position}")
        self._check_given_up(terms, row)
        first = self._rows[(consumer, queue)][0].seq
        slots = self._world.tables.queue(queue).entries()
        # Below the floor a slot may hold a repeat, which is read by nobody.
        for seq in range(max(first, cursor.start) + 1, row.seq + 1) if transactional else ():
            aside = (consumer, queue, seq) in self._control.dead
            if seq in slots and not self._is_tombstone(slots, seq) and not aside:
                self._check_once(consumer, queue, seq)

    def _check_given_up(self, terms: DeliveryTerms, row: Checkpoint) -> None:
        """I8: a message that kills its process is set aside in the end, or its queue parked for good."""
        parked = row.parked
        if parked is None or not is_crash_guard(parked):
            return
        if terms.dead_letters or parked.next_try is not None or parked.attempts < terms.max_attempts:
            raise InvariantBroken("I8", f"{terms.name} does not get past what kills it: {parked}")

    def _check_once(self, consumer: str, queue: str, seq: int) -> None:
        times = self._applied[(consumer, queue, seq)]
        if times != 1:
            raise InvariantBroken("I4", f"{consumer}, {queue!r}: the effect of seq {seq} was applied {times} times")

    def _check_first(self, row: Checkpoint) -> None:
        """I3: once a consumer's first checkpoints are set, a queue without one is new, and begins at its start."""
        cursor = self._world.tables.cursors.get(row.queue)
        if row.consumer not in self._ever_ready or cursor is None:
            return
        start = first_checkpoint(self._control.consumers[row.consumer].start, cursor)
        if row.seq > start:
            raise InvariantBroken("I3", f"{row.consumer} begins queue {row.queue!r} after {row.seq}, not after {start}")

    def _check_move(self, old: Checkpoint, new: Checkpoint) -> None:
        place = (new.consumer, new.queue)
        if new.seq < old.seq or new.version <= old.version:
            raise InvariantBroken("I3", f"{place}: the checkpoint went from {old} back to {new}")
        slots, cursor = self._world.tables.queue(new.queue).entries(), self._world.tables.cursors.get(new.queue)
        for seq in range(old.seq + 1, new.seq + 1):
            aside = (*place, seq) in self._control.dead or self._is_behind_a_trim(new.consumer, cursor, seq)
            if seq not in self._done[place] and not aside and not self._is_tombstone(slots, seq):
                raise InvariantBroken("I3", f"{place}: the checkpoint passed seq {seq}, which was not done")

    def check_effects(self) -> None:
        """I4: the effects of a message are not applied twice. Those of a batch go together, so they count once."""
        fresh = self._control.effects[self._effects :]
        self._effects += len(fresh)
        batches = {id(batch): (consumer, batch) for consumer, batch in (self._batches[id(effect)] for effect in fresh)}
        for consumer, batch in batches.values():
            for seq in batch.seqs:
                self._applied[(consumer, batch.queue, seq)] += 1
                if self._applied[(consumer, batch.queue, seq)] > 1:
                    raise InvariantBroken("I4", f"{consumer}, {batch.queue!r}: seq {seq} had its effect twice")

    def _is_behind_a_trim(self, consumer: str, cursor: Cursor | None, seq: int) -> bool:
        """Return True if others trimmed a seq while a consumer was retired: a discard takes it past."""
        return consumer in self._oracle.retired and cursor is not None and seq <= cursor.start

    @staticmethod
    def _is_tombstone(slots: dict[int, Any], seq: int) -> bool:
        return seq in slots and slots[seq].is_tombstone
