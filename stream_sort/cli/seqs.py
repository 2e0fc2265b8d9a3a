"""Seqs as people write and read them; which of those to be skipped were not missing, and what was released."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from stream_sort.cli.choice import counted, some_of
from stream_sort.errors import InvalidInput
from stream_sort.model.gaps import length
from stream_sort.model.outcomes import Skip

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stream_sort.model.outcomes import Advance
    from stream_sort.sorter import Sorter

# So many slots are looked at to tell messages from tombstones, a page at a time.
MOST_COUNTED, PAGE = 100_000, 1_000
SEQS = re.compile(r"(-?[0-9]{1,20})(?:(?:-|\.\.)(-?[0-9]{1,20}))?")


class Released(NamedTuple):
    """How many messages an advance released, tombstones left out; at most so many if not `exact`."""

    messages: int
    exact: bool = True

    def __str__(self) -> str:
        return f"{'' if self.exact else 'up to '}{counted(self.messages, 'message')} released"


def released_by(sorter: Sorter, done: Advance) -> Released:
    """Count what an advance released as people do: a seq that was skipped is no message."""
    if not done.moved:
        return Released(0)
    if done.released > MOST_COUNTED:
        given_up = done.skipped if isinstance(done, Skip) else ()
        return Released(done.released - sum(done.old < seq <= done.new for seq in given_up), exact=False)
    after, tombstones = done.old, 0
    while after < done.new:
        page = sorter.stores.items.arrivals(done.queue, after, min(PAGE, done.new - after))
        tombstones += sum(item.is_tombstone for item in page.items if item.seq <= done.new)
        after = page.items[-1].seq if page.items else done.new
    return Released(max(0, done.released - tombstones))


def seqs_of(text: str) -> range:
    """The seqs of an argument, such as 7 or 2-5; InvalidInput if it is none."""
    match = SEQS.fullmatch(text)
    if match is None:
        raise InvalidInput(f"{text!r} is no seq; give one, such as 7, or a range, such as 2-5")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise InvalidInput(f"{text!r} ends before it begins")
    return range(first, last + 1)


def seqs_text(seqs: Iterable[range]) -> str:
    """Seqs as people and `skip` write them: 2-3 7."""
    return " ".join(f"{part.start}" if length(part) == 1 else f"{part.start}-{part.stop - 1}" for part in seqs)


def named(seqs: list[range]) -> str:
    """Seqs for people, the first few of many."""
    told = some_of([seqs_text([part]) for part in seqs])
    is_one = len(seqs) == 1 and length(seqs[0]) == 1
    return f"seq {told}" if is_one else f"seqs {told or 'none'}"


def not_missing(sorter: Sorter, done: Skip, wanted: list[range]) -> Iterator[str]:
    """What became of those that a skip left as they are: it fills no slot but one that is missing."""
    skipped = set(done.skipped)
    left = sorted({seq for part in wanted for seq in part} - skipped)
    if not left:
        return
    row = sorter.stores.cursors.get(done.queue)
    first = sorter.options.first_seq if row is None else row.first_seq
    kinds = {
        f"before the start of the queue at {first}": [seq for seq in left if seq < first],
        "released already": [seq for seq in left if first <= seq <= done.old],
        "stored or skipped before": [seq for seq in left if seq > max(done.old, first - 1)],
    }
    for kind, seqs in kinds.items():
        if seqs:
            yield f"{named(list(_runs(seqs)))}, {kind}"


def _runs(ascending: Iterable[int]) -> Iterator[range]:
    """Seqs as ranges, each as long as it goes."""
    run = range(0)
    for seq in ascending:
        if run and seq == run.stop:
            run = range(run.start, seq + 1)
            continue
        if run:
            yield run
        run = range(seq, seq + 1)
    if run:
        yield run
