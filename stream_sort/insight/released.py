"""What an advance released and what a skip left alone, counted as people count: a skipped seq is no message."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stream_sort.insight.wording import counted, named_seqs
from stream_sort.model.gaps import runs_of
from stream_sort.model.outcomes import Skip
from stream_sort.model.slots import expand

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.insight.sources import Sources
    from stream_sort.model.outcomes import Advance
    from stream_sort.ports import ItemStore

# So many slots are looked at to tell messages from tombstones, a page at a time.
MOST_COUNTED, PAGE = 100_000, 1_000


class Released(NamedTuple):
    """How many messages an advance released, tombstones left out; at most so many if not `exact`."""

    messages: int
    exact: bool = True

    def __str__(self) -> str:
        return f"{'' if self.exact else 'up to '}{counted(self.messages, 'message')} released"


def released_by(items: ItemStore, done: Advance) -> Released:
    """Count what an advance released as people do: a seq that was skipped is no message."""
    if not done.moved:
        return Released(0)
    if done.released > MOST_COUNTED:
        given_up = done.skipped if isinstance(done, Skip) else ()
        return Released(done.released - sum(done.old < seq <= done.new for seq in given_up), exact=False)
    after, tombstones = done.old, 0
    while after < done.new:
        page = items.arrivals(done.queue, after, min(PAGE, done.new - after))
        tombstones += sum(entry.is_tombstone for entry in expand(page.slots, through=done.new))
        after = page.slots[-1].last if page.slots else done.new
    return Released(max(0, done.released - tombstones))


def not_missing(sources: Sources, done: Skip, wanted: list[range]) -> Iterator[str]:
    """Say what is with those that a skip left as they are: it fills no slot but one that is missing."""
    skipped = set(done.skipped)
    left = sorted({seq for part in wanted for seq in part} - skipped)
    if not left:
        return
    row = sources.cursors.get(done.queue)
    first = sources.first_seq if row is None else row.first_seq
    kinds = {
        f"before the start of the queue at {first}": [seq for seq in left if seq < first],
        "released already": [seq for seq in left if first <= seq <= done.old],
        "stored or skipped before": [seq for seq in left if seq > max(done.old, first - 1)],
    }
    for kind, seqs in kinds.items():
        if seqs:
            yield f"{named_seqs(runs_of(seqs))}, {kind}"
