"""Runs, gaps and moves: the ordering rules, given what is present. Knows no store and no clock.

One interval everywhere, half open: `(after, through]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator


def run_end(position: int, present: Container[int], limit: int) -> int:
    """The last seq of the contiguous run after `position`, at most `limit` seqs long."""
    end = position
    while end - position < limit and end + 1 in present:
        end += 1
    return end


def run_through(position: int, ascending: Iterable[int]) -> int:
    """The last seq of the contiguous run after `position` in ascending seqs."""
    end = position
    for seq in ascending:
        if seq != end + 1:
            break
        end = seq
    return end


def gaps_between(position: int, ascending: Iterable[int]) -> Iterator[range]:
    """The runs of missing seqs after `position` and below the highest of the ascending seqs."""
    expected = position + 1
    for seq in ascending:
        if seq > expected:
            yield range(expected, seq)
        expected = seq + 1
