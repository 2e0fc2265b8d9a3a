"""Words that all read models share: counts, times, time spans and seqs, as people read them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from stream_sort.model.durations import duration_text
from stream_sort.model.gaps import length

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stream_sort.model.gap_policy import GapPolicy

# So many of a list are named; the others are counted.
NAMED = 5
MINUTE, HOUR, DAY = 60, 3_600, 86_400


class CommandText(Protocol):
    """Writes commands of `stream-sort`, to be named as what to do."""

    def __call__(self, *words: str, options: Sequence[str] = ()) -> str:
        """Return a command and its arguments as they can be typed."""


def some_of(names: Sequence[str]) -> str:
    """Return the first few of many names."""
    told = ", ".join(names[:NAMED])
    return told if len(names) <= NAMED else f"{told} and {len(names) - NAMED:,} more"


def counted(count: int, noun: str) -> str:
    """Return a number of things."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def moment(seconds: float | None) -> str:
    """Return a time, in UTC."""
    return "" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}Z"


def age(seconds: float) -> str:
    """Return a time span: 40 s, 12 min, 3.5 h, 2.0 d."""
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * HOUR:
        return f"{seconds / MINUTE:.0f} min"
    return f"{seconds / HOUR:.1f} h" if seconds < 2 * DAY else f"{seconds / DAY:.1f} d"


def policy_text(policy: GapPolicy) -> str:
    """Return a gap policy as people write it: wait, or skip after 1d12h."""
    return str(policy) if policy.skip_after is None else f"skip after {duration_text(policy.skip_after)}"


def seqs_text(seqs: Iterable[range]) -> str:
    """Return seqs as people and `skip` write them: 2-3 7."""
    return " ".join(f"{part.start}" if length(part) == 1 else f"{part.start}-{part.stop - 1}" for part in seqs)


def named_seqs(seqs: list[range]) -> str:
    """Return seqs for a sentence, the first few of many."""
    told = some_of([seqs_text([part]) for part in seqs])
    is_one = len(seqs) == 1 and length(seqs[0]) == 1
    return f"seq {told}" if is_one else f"seqs {told or 'none'}"
