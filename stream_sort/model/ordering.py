"""Runs, gaps and moves: the ordering rules, given the seqs that each slot fills. Knows no store and no clock.

One interval everywhere, half open: `(after, through]`. A slot follows another if its first seq follows the last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator


def run_end(position: int, present: Container[int], limit: int) -> int:
    """Return the last seq of the contiguous run after `position`, at most `limit` seqs long."""
    end = position
    while end - position < limit and end + 1 in present:
        end += 1
    return end


def run_through(position: int, slots: Iterable[range], limit: int | None = None) -> int:
    """Return the last seq of the contiguous run after `position`, given ascending slots.

    `position` may lie inside of one. With a `limit`, the run ends with the slot that brings it to so many seqs.
    """
    end = position
    for seqs in slots:
        if seqs.start > end + 1 or (limit is not None and end - position >= limit):
            break
        end = max(end, seqs.stop - 1)
    return end


def gaps_between(position: int, slots: Iterable[range]) -> Iterator[range]:
    """Yield the runs of missing seqs after `position` and below the highest of ascending slots."""
    expected = position + 1
    for seqs in slots:
        if seqs.start > expected:
            yield range(expected, seqs.start)
        expected = max(expected, seqs.stop)
