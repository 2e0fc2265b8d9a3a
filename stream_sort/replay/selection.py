"""Which messages are wanted: queues, seqs, arrival times. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from stream_sort.errors import InvalidInput, SettingsError, shown
from stream_sort.model.message import MAX_SEQ, MIN_SEQ, check_queue
from stream_sort.replay.files.json_content import value_of
from stream_sort.replay.ranges import Range

if TYPE_CHECKING:
    from collections.abc import Iterable

YEAR_10000 = 253_402_300_800.0


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
        """Return whether a queue is wanted at all."""
        return (self.queues is None or queue in self.queues) and (self.only is None or queue in self.only)

    def wants_time(self, arrived_at: int | None) -> bool:
        """Return True if a slot of that arrival, in milliseconds, is wanted; without one it is, unless times count."""
        if not self.by_time:
            return True
        if arrived_at is None:
            return False
        early = self.since is not None and arrived_at < self.since * 1000
        return not early and (self.until is None or arrived_at < self.until * 1000)


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
