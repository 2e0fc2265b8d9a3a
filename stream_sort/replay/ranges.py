"""Ranges of queues, and how they are cut into parts of about equal work. Pure; knows neither tables nor Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

from stream_sort.errors import SettingsError, shown
from stream_sort.model.message import MAX_SEQ, MIN_SEQ

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """The seqs `(after, through]` of one queue."""

    queue: str
    after: int
    through: int

    def __len__(self) -> int:
        """Return how many seqs it holds."""
        return max(0, self.through - self.after)


def range_of(queue: object, after: object, through: object) -> Range:
    """Return the range that a file tells of; ValueError for what can be none."""
    # No longer than what has a length.
    if isinstance(queue, str) and is_number(after) and is_number(through) and 0 <= through - after <= MAX_SEQ:
        return Range(queue, after, through)
    raise ValueError(f"{shown([queue, after, through])} is no range of a queue")


def is_number(value: object) -> TypeGuard[int]:
    """Return whether a value of a file can be a seq, the bound of a range, or a count."""
    return type(value) is int and MIN_SEQ - 1 <= value <= MAX_SEQ


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a job: some ranges, to be read one after the other."""

    number: int
    ranges: tuple[Range, ...]

    @property
    def rows(self) -> int:
        """How many seqs it holds."""
        return sum(map(len, self.ranges))


# Rows of a part where nobody asks for more or fewer.
ROWS_PER_PART = 100_000
# What it takes to ask for one more range, in rows that could be read meanwhile.
ROWS_A_RANGE = 150


def cut(ranges: Iterable[Range], rows_per_part: int) -> list[Part]:
    """Return parts of about equal work, in the order of their ranges: long ranges are cut, short ones packed together.

    The same ranges give the same parts, and no part has more than `rows_per_part` rows; one of many short ranges has
    fewer, because each takes a request.
    """
    if rows_per_part < 1:
        raise SettingsError(f"rows per part is {rows_per_part}; it must be at least 1")
    packed: list[list[Range]] = []
    room, price = 0, min(ROWS_A_RANGE, rows_per_part // 50)
    for piece in _pieces(ranges, rows_per_part):
        if len(piece) > room:
            packed.append([])
            room = rows_per_part
        packed[-1].append(piece)
        room -= len(piece) + price
    return [Part(number, tuple(held)) for number, held in enumerate(packed)]


def joined(ranges: Iterable[Range]) -> list[Range]:
    """Return the same seqs in as few ranges as possible, sorted; overlaps count once."""
    whole: list[Range] = []
    for one in sorted(one for one in ranges if len(one)):
        last = whole[-1] if whole else None
        if last is not None and last.queue == one.queue and one.after <= last.through:
            whole[-1] = Range(one.queue, last.after, max(last.through, one.through))
        else:
            whole.append(one)
    return whole


def _pieces(ranges: Iterable[Range], most: int) -> Iterator[Range]:
    """Yield each range in equal pieces of at most `most` rows."""
    for whole in ranges:
        count = -(-len(whole) // most)
        for number in range(count):
            start = whole.after + len(whole) * number // count
            end = whole.after + len(whole) * (number + 1) // count
            yield Range(whole.queue, start, end)
