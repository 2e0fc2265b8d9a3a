"""The history of the tables, and claims that can be read off it: I1, I2, I5, I6, I10, and those on gap policies.

G1  no gap is skipped that is younger than its policy says, by the oldest message stored beyond it. If that is withdrawn
    in the very moment, the one seq before it may be skipped, and no other
G2  a sweep leaves no gap that is due, in any queue that it could look at
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stream_sort.model.gap_policy import GapPolicy
from stream_sort.model.message import same_value
from stream_sort.model.ordering import run_end
from stream_sort.testing.simulation.failure import InvariantBroken
from stream_sort.upkeep.gap_notes import REASON

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stream_sort.model.records import Cursor
    from stream_sort.model.slots import Entry
    from stream_sort.model.withdrawal import Withdrawal
    from stream_sort.testing.simulation.operations import Attempt
    from stream_sort.testing.simulation.world import World

# Times are floats.
CLOSE = 1e-6


@dataclass(frozen=True, slots=True)
class SlotContent:
    """A content that a slot had, and the attempt that put it there."""

    entry: Entry
    attempt: int


class Oracle:
    """Remembers every slot's content and every row, and raises InvariantBroken when a change is not allowed.

    A slot has one content for ever; a trimmed one may be filled again, which releases nothing. `cut` are the seqs that
    the service trimmed: others delete without a word, and what is put there again is accepted in vain. What was
    withdrawn is out of the book: its slot is as if it had never been filled.
    """

    def __init__(self, world: World, first_seq: int) -> None:
        self.world = world
        self.lost: set[str] = set()
        # Consumers that were retired at some time: a trim need not have waited for them.
        self.retired: set[str] = set()
        # Queues in which our own code met a bug.
        self.met_bugs: set[str] = set()
        self.released: Counter[str] = Counter()
        self.cut: defaultdict[str, set[int]] = defaultdict(set)
        self._starts: defaultdict[str, list[int]] = defaultdict(lambda: [first_seq])
        self._book: defaultdict[str, dict[int, list[SlotContent]]] = defaultdict(dict)
        self._trimmed: defaultdict[str, set[int]] = defaultdict(set)
        self.withdrawn: defaultdict[str, dict[int, list[SlotContent]]] = defaultdict(dict)
        self._promised: defaultdict[str, set[int]] = defaultdict(set)
        self._rows: dict[str, Cursor] = {}
        self._stored: defaultdict[str, list[Entry]] = defaultdict(list)

    @property
    def queues(self) -> list[str]:
        """Return every queue that holds or held anything."""
        return sorted({*self._book, *self._rows})

    def observe(self, queue: str, attempt: Attempt) -> None:
        """Check a queue after a write of this attempt."""
        self._check_slots(queue, attempt)
        self._check_row(queue, attempt)

    def trim(self, queue: str, seqs: list[int]) -> None:
        """Note that these slots were emptied from outside."""
        self._trimmed[queue].update(seqs)

    def is_trimmed(self, queue: str, seq: int | None) -> bool:
        """Return True if a seq lies at or below the floor of its queue."""
        row = self._rows.get(queue)
        return row is not None and seq is not None and row.first_seq <= seq <= row.start

    def contents(self, message: dict[str, Any]) -> list[SlotContent]:
        """Return what the slot of a message held, one entry unless it was withdrawn, or trimmed, and filled again."""
        withdrawn = self.withdrawn[message["queue"]].get(message["seq"], [])
        return withdrawn + self.contents_since_withdrawn(message)

    def contents_since_withdrawn(self, message: dict[str, Any]) -> list[SlotContent]:
        """Return the same without what was withdrawn."""
        return self._book[message["queue"]].get(message["seq"], [])

    def has_kept(self, withdrawal: Withdrawal) -> bool:
        """Return True if a withdrawal is kept as it was answered."""
        return self.world.tables.withdrawn.get(withdrawal.queue, {}).get(withdrawal.number) == withdrawal

    def promise(self, message: dict[str, Any]) -> None:
        """Note that a caller was told that this message is stored."""
        self._promised[message["queue"]].add(message["seq"])

    def starts(self, queue: str) -> int:
        """Return how often a queue was given a start so far."""
        return len(self._starts[queue])

    def refuses(self, queue: str, seq: int, since: int) -> bool:
        """Return True if a seq lies before a start that its queue had at that count of starts, or after.

        A queue whose row is lost starts where every queue does, as far as anybody can tell.
        """
        starts = self._starts[queue]
        return seq < max(starts[since - 1 :]) or (queue in self.lost and seq < starts[0])

    def count_released(self, queue: str, length: int) -> None:
        """Add up what calls said they released: no seq may be counted twice."""
        self.released[queue] += length
        row = self._rows.get(queue)
        whole = 0 if row is None else row.position - (row.first_seq - 1)
        if self.released[queue] > whole:
            raise InvariantBroken("I6", f"{queue}: {self.released[queue]} seqs counted as released, there are {whole}")

    def check_rest(self) -> None:
        """I2, and the marks by which a sweep finds what waits, once nobody works any more."""
        for queue in self.queues:
            if queue not in self.lost:
                self._check_slots(queue, None)
                self._check_end(queue)

    def check_gaps(self, policy: GapPolicy, *, but: str = "") -> None:
        """G2, once a sweep has been by: no queue but one waits at a gap that is due; `policy` is the usual one."""
        for queue in self.queues:
            row = self._rows.get(queue)
            if row is not None and queue != but and queue not in self.lost:
                _check_none_due(row, self.world.tables.queue(queue).entries(), policy, self.world.now)

    def _check_end(self, queue: str) -> None:
        row, book = self._rows.get(queue), self._book[queue]
        if row is None:
            raise InvariantBroken("I2", f"{queue}: {sorted(book)} stored and no cursor row")
        end = run_end(row.start, book, len(book))
        if row.position != end:
            raise InvariantBroken("I2", f"{queue}: position {row.position}, the run ends at {end}")
        if row.waiting_since is None and any(seq > end for seq in book):
            raise InvariantBroken("I2", f"{queue}: something waits beyond {end} and the row has no waiting mark")
        below = sorted(seq for seq in self._promised[queue] if seq < row.first_seq)
        if below:
            raise InvariantBroken("I5", f"{queue}: accepted seqs {below} lie below first_seq {row.first_seq}")

    def _check_slots(self, queue: str, attempt: Attempt | None) -> None:
        slots, book, trimmed = self.world.tables.queue(queue).entries(), self._book[queue], self._trimmed[queue]
        number = 0 if attempt is None else attempt.number
        new: list[Entry] = []
        for seq, entry in slots.items():
            contents = book.get(seq)
            if contents is None:
                book[seq] = [SlotContent(entry, number)]
                self._stored[queue].append(entry)
                new.append(entry)
            elif seq in trimmed:
                self._check_refill(queue, seq)
                contents.append(SlotContent(entry, number))
                trimmed.discard(seq)
            elif contents[-1].entry is not entry:
                _check_same(contents[-1].entry, entry)
                contents[-1] = replace(contents[-1], entry=entry)
        withdrawn = [content.entry for contents in self.withdrawn[queue].values() for content in contents]
        for entry in new:
            _check_not_early(entry, self._stored[queue], withdrawn, self.world.now)
        if len(slots) != len(book) - len(trimmed):
            for seq in sorted(book.keys() - slots.keys() - trimmed):
                if attempt is not None and attempt.operation.name == "withdraw":
                    self._check_withdrawal(queue, seq, attempt)
                    self.withdrawn[queue].setdefault(seq, []).extend(book.pop(seq))
                    self._stored[queue] = [entry for entry in self._stored[queue] if entry.seq != seq]
                    continue
                self._check_cut(queue, seq, attempt)
                trimmed.add(seq)

    def _check_withdrawal(self, queue: str, seq: int, attempt: Attempt) -> None:
        """I5: only a message that nobody could release is withdrawn, and it is kept."""
        row, entry = self._rows.get(queue), self._book[queue][seq][-1].entry
        if row is None or seq != attempt.operation.argument or entry.is_tombstone:
            raise InvariantBroken("I5", f"{queue}: {entry} is gone, by {attempt.operation}")
        if row.position >= seq - 1 or seq - 1 in self.world.tables.queue(queue).slots:
            raise InvariantBroken("I5", f"{queue}: seq {seq} was withdrawn, which is released or can be: {row}")
        kept = self.world.tables.withdrawn.get(queue, {}).values()
        if not any(one.seq == seq and same_value(one.message, entry.document) for one in kept):
            raise InvariantBroken("I5", f"{queue}: seq {seq} was withdrawn and is not kept")

    def _check_cut(self, queue: str, seq: int, attempt: Attempt | None) -> None:
        """I5: nothing goes but what a trim deletes, all consumers being past it, and what is taken back thereafter."""
        row = self._rows.get(queue)
        if attempt is None or row is None or not self.is_trimmed(queue, seq):
            raise InvariantBroken("I5", f"{queue}: seq {seq} was stored and is gone")
        if attempt.operation.name != "trim":
            if seq not in self.cut[queue]:
                raise InvariantBroken("I5", f"{queue}: seq {seq} was taken back, which was no repeat")
            return
        if seq >= row.position:
            raise InvariantBroken("I10", f"{queue}: seq {seq} was trimmed, the proof that there is a row")
        for checkpoint in self.world.control.checkpoints.values():
            is_behind = checkpoint.queue == queue and checkpoint.seq < seq
            if is_behind and checkpoint.consumer not in self.retired:
                raise InvariantBroken("I5", f"{queue}: seq {seq} was trimmed, {checkpoint} has not passed it")
        self.cut[queue].add(seq)

    def _check_refill(self, queue: str, seq: int) -> None:
        row = self._rows.get(queue)
        if row is None or (seq > row.position and queue not in self.lost):
            raise InvariantBroken("I5", f"{queue}: seq {seq} was trimmed beyond the position")

    def _check_row(self, queue: str, attempt: Attempt) -> None:
        row, before = self.world.tables.cursors.get(queue), self._rows.get(queue)
        if queue in self.lost:
            if row is not None:
                raise InvariantBroken("I10", f"{queue}: the lost cursor row was recreated at {row.position}")
            return
        if row is None or row is before:
            if row is not before:
                raise InvariantBroken("I10", f"{queue}: the cursor row is gone")
            return
        start = row.start
        old = start if before is None else before.position
        _check_floor(before, row)
        _check_count(before, row)
        if before is not None and before.first_seq != row.first_seq:
            if (before.position, row.position) != (before.first_seq - 1, start):
                raise InvariantBroken("I1", f"{queue}: restarted at {row.first_seq} with position {before.position}")
            old = start
        if row.position < old:
            raise InvariantBroken("I1", f"{queue}: position went from {old} back to {row.position}")
        missing = [seq for seq in range(old + 1, row.position + 1) if seq not in self._book[queue]]
        if missing:
            raise InvariantBroken("I1", f"{queue}: seqs {missing} were released and never stored or skipped")
        attempt.moved[queue] += row.position - old
        if row.first_seq != self._starts[queue][-1]:
            self._starts[queue].append(row.first_seq)
        self._rows[queue] = row


def _check_floor(before: Cursor | None, row: Cursor) -> None:
    """I5: a floor never goes back, and never beyond what is released."""
    is_lower = before is not None and before.floor is not None and (row.floor is None or row.floor < before.floor)
    if is_lower or (row.floor is not None and row.floor > row.position):
        raise InvariantBroken("I5", f"the floor went from {before} to {row}")


def _check_count(before: Cursor | None, row: Cursor) -> None:
    """I1: the count of withdrawals never goes back."""
    if before is not None and row.withdrawals < before.withdrawals:
        raise InvariantBroken("I1", f"the count of withdrawals went from {before} to {row}")


def _check_same(before: Entry, after: Entry) -> None:
    """I6: a slot's content stays; only a late message may come to stand beside a tombstone, once."""
    late_came = before.is_tombstone and before.late is None
    kept = replace(after, late=before.late) if late_came else after
    fields = ("seq", "document", "arrived_at", "skipped", "late")
    if not all(same_value(getattr(before, name), getattr(kept, name)) for name in fields):
        raise InvariantBroken("I6", f"the slot's content changed from {before} to {after}")


def _check_not_early(new: Entry, stored: Iterable[Entry], withdrawn: Iterable[Entry], now: float) -> None:
    """Raise for G1 if a policy's tombstone was put before a message beyond it was old enough."""
    if new.skipped is None or not new.skipped.startswith(REASON):
        return
    skip_after = GapPolicy.parse(new.skipped.removeprefix(REASON)).skip_after or 0.0
    if any(one.seq == new.seq + 1 for one in withdrawn):
        stored = [*stored, *withdrawn]
    arrivals = [one.arrived_at for one in stored if one.seq > new.seq and not one.is_tombstone]
    oldest = min((at for at in arrivals if at is not None), default=None)
    if oldest is None or now - oldest < skip_after - CLOSE:
        raise InvariantBroken("G1", f"seq {new.seq} was skipped at {now}, the oldest beyond is {oldest}")


def _check_none_due(row: Cursor, entries: Mapping[int, Entry], policy: GapPolicy, now: float) -> None:
    """Raise for G2 if a gap is left before a message that is old enough."""
    skip_after = (row.policy or policy).skip_after
    if skip_after is None:
        return
    for seq, entry in entries.items():
        is_due = entry.arrived_at is not None and now - entry.arrived_at >= skip_after
        if seq > row.position and not entry.is_tombstone and is_due:
            raise InvariantBroken("G2", f"{row.queue}: seq {seq} waits since {entry.arrived_at} beyond {row.position}")
