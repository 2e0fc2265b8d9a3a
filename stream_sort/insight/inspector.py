"""Service: answer questions about a queue without changing it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING

from stream_sort.model.gap_policy import MAX_GAP
from stream_sort.model.gaps import length, runs_of
from stream_sort.model.message import MAX_SEQ, MIN_SEQ
from stream_sort.model.ordering import gaps_between
from stream_sort.model.outcomes import LateMessage, QueueState
from stream_sort.model.slots import expand
from stream_sort.release.gap_age import head_gap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stream_sort.model.gap_policy import GapPolicy
    from stream_sort.model.gaps import Gap
    from stream_sort.model.records import Cursor
    from stream_sort.model.slots import Entry
    from stream_sort.ports import ItemStore

PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Inspector:
    """Reads what is stored, with consistent reads, in pages."""

    items: ItemStore
    first_seq: int = 0

    def filled_after(self, queue: str, position: int) -> Iterator[range]:
        """Yield the seqs that each slot after a position fills, ascending."""
        more = True
        while more:
            look = self.items.look(queue, position, PAGE)
            yield from look.slots
            more = look.more
            position = look.slots[-1].stop - 1 if look.slots else position

    def gaps(self, queue: str, position: int) -> list[range]:
        """Return all gaps after a position."""
        return list(gaps_between(position, self.filled_after(queue, position)))

    def explain(self, cursor: Cursor, policy: GapPolicy, limit: int, now: float) -> QueueState:
        """Return the state of a queue, from at most `limit` slots beyond the position and as many at its end."""
        queue, position = cursor.queue, cursor.position
        ahead = list(islice(chain.from_iterable(self.filled_after(queue, position)), limit))
        highest = self.items.highest(queue)
        if highest is not None and highest <= cursor.start:
            # Trimmed but for the proof that there was a row.
            highest = None
        all_seen = not ahead or highest is None or ahead[-1] >= highest
        tombstones, all_searched = self._tombstones(cursor, limit)
        head = head_gap(self.items, cursor, now) if any(gaps_between(position, runs_of(ahead))) else None
        tombs = {entry.seq for entry in tombstones}
        end = 0 if head is None else _after_last_message(ahead, tombs) if all_seen else len(ahead)
        ahead, in_advance = _parted(position, ahead, end)
        return QueueState(
            queue=queue,
            position=position,
            first_seq=cursor.first_seq,
            highest_stored=highest,
            gaps=list(gaps_between(position, runs_of(ahead))),
            stored_beyond=len(ahead),
            waiting_since=None if head is None else head.since,
            policy=policy,
            skipped=sorted(tombs),
            late=_late(tombstones),
            complete=all_seen and all_searched,
            remedy=self._remedy(cursor, policy, ahead, head) + self._below(cursor),
            floor=cursor.floor,
            withdrawn=cursor.withdrawals,
            skipped_ahead=in_advance,
        )

    def late(self, cursor: Cursor, limit: int) -> list[LateMessage]:
        """Return the late messages among the highest `limit` slots, lowest seq first; those that a trim kept, too."""
        return _late(list(expand(self.items.tombstones(cursor.queue, limit).slots)))

    def _tombstones(self, cursor: Cursor, limit: int) -> tuple[list[Entry], bool]:
        """Return the highest first, as far as they are not trimmed; and whether all slots were searched."""
        searched = self.items.tombstones(cursor.queue, limit)
        return list(expand(searched.slots, cursor.floor)), not searched.more

    def _remedy(self, cursor: Cursor, policy: GapPolicy, ahead: list[int], head: Gap | None) -> str:
        queue, following = cursor.queue, cursor.position + 1
        if not ahead:
            return "nothing waits"
        if ahead[0] == following:
            return f"seq {following} is stored but not released: advance({queue!r}) frees it, as will the next message"
        gap = range(following, ahead[0])
        if head is not None and length(head.seqs) > MAX_GAP:
            # There may be tombstones before the gap that holds up what waits.
            gap = next(
                (one for one in gaps_between(cursor.position, runs_of(ahead)) if length(one) > MAX_GAP), head.seqs
            )
        if length(gap) <= MAX_GAP:
            return _advice(queue, gap, policy)
        return _stray(queue, gap, policy, self._lowest_message(queue, gap.stop))

    def _lowest_message(self, queue: str, start: int) -> int | None:
        """Return the lowest message from a seq on, within a page; None if it follows a skipped seq without a gap."""
        skipped = None
        for entry in expand(self.items.arrivals(queue, start - 1, PAGE).slots):
            if not entry.is_tombstone:
                return None if entry.seq - 1 == skipped else entry.seq
            skipped = entry.seq
        return None

    def _below(self, cursor: Cursor) -> str:
        """Say that messages are stored before the start of the queue: written past us, or just before it was opened."""
        look = self.items.look(cursor.queue, MIN_SEQ - 1, 1)
        if not look.slots or look.slots[0].start >= cursor.first_seq:
            return ""
        lowest = look.slots[0].start
        told = f"; seq {lowest} is stored before the start of the queue at {cursor.first_seq} and is never released"
        if cursor.position < cursor.first_seq == self.first_seq:
            told += f", unless open({cursor.queue!r}, first_seq={lowest}) lets the queue start there"
        return told


def _after_last_message(ahead: list[int], tombstones: set[int]) -> int:
    """Return how many of some slots there are through the last one that holds a message."""
    return max((at for at, seq in enumerate(ahead, 1) if seq not in tombstones), default=0)


def _parted(position: int, ahead: list[int], end: int) -> tuple[list[int], list[int]]:
    """Return the first `end` slots and those that follow without a gap, then those beyond: skipped in advance."""
    while end < len(ahead) and ahead[end] == (ahead[end - 1] if end else position) + 1:
        end += 1
    return ahead[:end], ahead[end:]


def _late(tombstones: Sequence[Entry]) -> list[LateMessage]:
    return [LateMessage(one.seq, one.late, one.skipped or "") for one in reversed(tombstones) if one.late is not None]


def _advice(queue: str, gap: range, policy: GapPolicy) -> str:
    is_one = length(gap) == 1
    missing = f"seq {gap.start}" if is_one else f"seqs {gap.start} to {gap.stop - 1}"
    which = f"{gap.start}" if is_one else f"range({gap.start}, {gap.stop})"
    then = f"put {missing}, or give up on {'it' if is_one else 'them'} with skip({queue!r}, {which})"
    if policy.skip_after is not None:
        then += f"; the policy skips the gap {policy.skip_after:g} seconds after the oldest message beyond it arrived"
    return then


def _stray(queue: str, gap: range, policy: GapPolicy, stray: int | None) -> str:
    """Return what to do about a gap too long to be given up; `stray` is the message beyond it that can be withdrawn."""
    then = f"{length(gap):,} seqs are missing, {gap.start} to {gap.stop - 1}. "
    if stray is None:
        then += (
            f"Seq {gap.stop} behind them was skipped, so neither it nor what follows it without a gap can be "
            "withdrawn: put what is missing"
        )
    elif stray > MAX_SEQ:
        then += (
            f"No seq is above {MAX_SEQ}: others wrote the item at {stray}, and nothing can release it. "
            "Delete it from the items table"
        )
    else:
        then += (
            f"If seq {stray} is a mistake, such as a time, take the message out with "
            f"withdraw({queue!r}, {stray}); else put what is missing"
        )
    if policy.skip_after is not None:
        then += f"; no policy skips a gap of over {MAX_GAP:,} seqs"
    return then
