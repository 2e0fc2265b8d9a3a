"""Claims on gap policies that can be read off the tables.

G1  no gap is skipped that is younger than its policy says, by the oldest message stored beyond it. If that is withdrawn
    in the very moment, the one seq before it may be skipped, and no other
G2  a sweep leaves no gap that is due, in any queue that it could look at
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.model.policy import GapPolicy
from stream_sort.testing.simulation.failure import InvariantBroken
from stream_sort.upkeep.gap_notes import REASON

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stream_sort.model.records import Cursor
    from stream_sort.model.slots import Entry

# Times are floats.
CLOSE = 1e-6


def check_not_early(new: Entry, stored: Iterable[Entry], withdrawn: Iterable[Entry], now: float) -> None:
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


def check_none_due(row: Cursor, entries: Mapping[int, Entry], policy: GapPolicy, now: float) -> None:
    """Raise for G2 if a gap is left before a message that is old enough."""
    skip_after = (row.policy or policy).skip_after
    if skip_after is None:
        return
    for seq, entry in entries.items():
        is_due = entry.arrived_at is not None and now - entry.arrived_at >= skip_after
        if seq > row.position and not entry.is_tombstone and is_due:
            raise InvariantBroken("G2", f"{row.queue}: seq {seq} waits since {entry.arrived_at} beyond {row.position}")
