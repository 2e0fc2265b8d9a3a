"""What disorder costs, where messages are put one by one: the expectation over all orders of arrival. Pure.

`shuffled` messages of a queue come in any order, then the next ones. A message moves the cursor if all before it came
before it: the k-th does so in one order of k. What waits behind it then is known exactly, and so is what a look reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING

from stream_sort.insight.costing.work import Work, read_units

if TYPE_CHECKING:
    from collections.abc import Iterator

# What is rarer than that changes no figure.
NEGLIGIBLE = 1e-9
PAGE_GROWTH = 4
# A message that releases nothing looks at the cursor row and at the slot behind the position, in one request.
IN_VAIN = Work(1, 0, 2)


@dataclass(frozen=True, slots=True)
class CostedRelease:
    """A message, or a batch, that releases so many messages of a queue, and what the cursor's move costs."""

    length: float
    work: Work


@dataclass(frozen=True, slots=True)
class LookAhead:
    """How a look ahead reads: the length of its first page, and the bytes of a message at rest."""

    first_page: int
    item_bytes: int


def releases(shuffled: int, look: LookAhead) -> Iterator[tuple[float, CostedRelease]]:
    """Yield how often a message causes which release; the shares of all add up to 1."""
    moves = 0.0
    for place in range(1, shuffled + 1):
        moves += 1 / place
        for share, waiting, run in _behind(place, shuffled - place):
            yield share / place / shuffled, CostedRelease(1 + run, _move(waiting, run, look))
    if shuffled > 1:
        yield 1 - moves / shuffled, CostedRelease(0, IN_VAIN)


def _behind(before: int, higher: int) -> Iterator[tuple[float, int, int]]:
    """Yield what waits when the last of the first `before` messages comes: its share, how many, and their first run.

    Of `higher` messages that may come at any time, so many came before it; which of them, is by chance.
    """
    for waiting in range(higher + 1):
        share = comb(waiting + before - 1, waiting) / comb(higher + before, higher)
        run, at_least = 0, 1.0
        while share * at_least > NEGLIGIBLE:
            # Of those behind the run, the next one is among those that came.
            longer = at_least * (waiting - run) / (higher - run) if run < higher else 0.0
            yield share * (at_least - longer), waiting, run
            run, at_least = run + 1, longer


def _move(waiting: int, run: int, look: LookAhead) -> Work:
    """Look ahead if the next one is known to wait; move; look behind the new position."""
    done, page, work = 0, look.first_page, Work()
    while run:
        read = min(page, waiting - done)
        work += _page(read, look)
        if read < page or read > run - done:
            done = run
            break
        done += read
        page *= PAGE_GROWTH
    return work + Work(1, 1, 0) + _page(min(page, waiting - run), look)


def _page(read: int, look: LookAhead) -> Work:
    return Work(1, 0, read_units(read * look.item_bytes))
