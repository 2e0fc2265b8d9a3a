"""Ranges of queues: which are wanted, by queue, seq and arrival, and how they are cut into parts. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeGuard, TypeVar

from stream_sort.errors import InvalidInput, SettingsError, shown
from stream_sort.model.message import MAX_SEQ, MIN_SEQ, check_queue
from stream_sort.replay.files.json_content import value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


# Rows of a part where nobody asks for more or fewer.
ROWS_PER_PART = 100_000
# What it takes to ask for one more range, in rows that could be read meanwhile.
ROWS_A_RANGE = 150
Thing = TypeVar("Thing")
YEAR_10000 = 253_402_300_800.0


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
    if (
        isinstance(queue, str)
        and is_stored_number(after)
        and is_stored_number(through)
        and 0 <= through - after <= MAX_SEQ
    ):
        return Range(queue, after, through)
    raise ValueError(f"{shown([queue, after, through])} is no range of a queue")


def is_stored_number(value: object) -> TypeGuard[int]:
    """Return True if a value of a file can be a seq, the bound of a range, or a count."""
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


def cut_parts(ranges: Iterable[Range], rows_per_part: int) -> list[Part]:
    """Return parts of about equal work, in the order of their ranges: long ranges are cut, short ones packed together.

    The same ranges give the same parts, and no part has more than `rows_per_part` rows; one of many short ranges has
    fewer, because each takes a request.
    """
    if rows_per_part < 1:
        raise SettingsError(f"rows per part is {rows_per_part}; it must be at least 1")
    price = min(ROWS_A_RANGE, rows_per_part // 50)
    together = packed(_pieces(ranges, rows_per_part), len, rows_per_part, price)
    return [Part(number, tuple(held)) for number, held in enumerate(together)]


def packed(things: Iterable[Thing], size: Callable[[Thing], int], most: int, price: int = 0) -> list[list[Thing]]:
    """Return things in their order, packed together up to a size; each has its `price` beside its size."""
    groups: list[list[Thing]] = []
    room = 0
    for thing in things:
        if not groups or size(thing) > room:
            groups.append([])
            room = most
        groups[-1].append(thing)
        room -= size(thing) + price
    return groups


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


@dataclass(frozen=True, slots=True)
class Selection:
    """What is to be read. Seqs `from_seq` to `to_seq`, both included; arrived at or after `since` and before `until`.

    Times are seconds since the epoch. `released` keeps to what is released: never past a queue's position.
    `queues` must all be there; of `only`, those that are there count.
    """

    queues: tuple[str, ...] | None = None
    from_seq: int | None = None
    to_seq: int | None = None
    since: float | None = None
    until: float | None = None
    released: bool = True
    only: frozenset[str] | None = None

    def __post_init__(self) -> None:
        if self.queues is not None:
            object.__setattr__(self, "queues", tuple(dict.fromkeys(map(check_queue, self.queues))))
            if not self.queues:
                raise SettingsError("queues is an empty list; name a queue, or leave it out for all")
        for name in ("from_seq", "to_seq"):
            seq = getattr(self, name)
            if seq is not None and not MIN_SEQ <= seq <= MAX_SEQ:
                raise SettingsError(f"{name} is {seq}; a seq is {MIN_SEQ} to {MAX_SEQ}")
        if self.from_seq is not None and self.to_seq is not None and self.from_seq > self.to_seq:
            raise SettingsError(f"from seq {self.from_seq} is above to seq {self.to_seq}: nothing can be there")
        for name in ("since", "until"):
            at = getattr(self, name)
            # Not so for NaN either.
            if at is not None and not 0 <= at < YEAR_10000:
                raise SettingsError(
                    f"{name} is {at}; it must be a time between 1970 and 9999, in seconds, not in milliseconds"
                )
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise SettingsError(
                f"since {_moment(self.since)} is not before until {_moment(self.until)}: nothing can be there"
            )

    @property
    def by_time(self) -> bool:
        """Whether arrival times count."""
        return self.since is not None or self.until is not None

    def clip(self, whole: Range) -> Range:
        """Return the part of a range that is wanted, as far as queue and seqs say; it may be empty."""
        if not self.wants_queue(whole.queue):
            return Range(whole.queue, whole.after, whole.after)
        after = whole.after if self.from_seq is None else max(whole.after, self.from_seq - 1)
        through = whole.through if self.to_seq is None else min(whole.through, self.to_seq)
        return Range(whole.queue, after, max(after, through))

    def wants_queue(self, queue: str) -> bool:
        """Return True if a queue is wanted at all."""
        return (self.queues is None or queue in self.queues) and (self.only is None or queue in self.only)


def clipped(selection: Selection, ranges: Iterable[Range]) -> list[Range]:
    """Return the wanted part of each range, without the empty ones, sorted."""
    return sorted(one for one in map(selection.clip, ranges) if len(one))


def queue_names(text: str) -> tuple[str, ...]:
    """Return queues given as a JSON list, or as one name; or as names with commas between."""
    if text.lstrip().startswith("["):
        try:
            names = value_of(text)
        except ValueError as error:
            raise SettingsError(
                f"queues is {shown(text)}, which starts like a JSON list but is none: {error}"
            ) from None
        if not all(isinstance(name, str) for name in names):
            raise SettingsError(f"queues is {shown(text)}; a JSON list of names must hold text only")
        return tuple(names)
    return tuple(name.strip() for name in text.split(",") if name.strip())


def parse_time(text: str, name: str) -> float:
    """Return a time given as ISO 8601 (UTC unless it says otherwise) or as seconds since the epoch."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        told = datetime.fromisoformat(text)
    except ValueError:
        raise SettingsError(
            f"{name} is {shown(text)}; it must be a time such as 2026-01-31T12:00:00Z, or seconds since the epoch"
        ) from None
    return (told if told.tzinfo else told.replace(tzinfo=UTC)).timestamp()


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def seq_number(text: str, name: str) -> int:
    """Return a seq given as text."""
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(f"{name} is {shown(text)}; it must be a whole number") from None
