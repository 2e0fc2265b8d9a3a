"""What a check finds: a level, a sentence, and what to do about it. Knows nothing of AWS."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Of one kind that many are told one by one; the others are counted.
SHOWN = 5


class Level(StrEnum):
    """How bad it is. FAIL: messages are not stored or not released, or soon will not be."""

    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a checkup; `remedy` is a command that can be typed, or a sentence; empty if all is well."""

    area: str
    level: Level
    text: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Checkup:
    """All that was found."""

    findings: tuple[Finding, ...]

    @property
    def failed(self) -> bool:
        """Whether something is broken."""
        return any(one.level is Level.FAIL for one in self.findings)

    @property
    def counts(self) -> dict[str, int]:
        """How many findings there are of each level."""
        counted = Counter(one.level for one in self.findings)
        return {level.value: counted[level] for level in Level}

    @property
    def summary(self) -> str:
        """The same in a line."""
        told = ", ".join(f"{count:,} {level}" for level, count in self.counts.items() if count)
        return f"{len(self.findings):,} checks: {told}"


def ok(area: str, text: str) -> Finding:
    """All is well."""
    return Finding(area, Level.OK, text)


def warn(area: str, text: str, remedy: str) -> Finding:
    """Somebody should look at it."""
    return Finding(area, Level.WARN, text, remedy)


def fail(area: str, text: str, remedy: str) -> Finding:
    """It does not work."""
    return Finding(area, Level.FAIL, text, remedy)


def not_checked(area: str, why: str) -> Finding:
    """Nobody knows."""
    return Finding(area, Level.NOT_CHECKED, why)


def some_of(found: Sequence[Finding], more: Finding | None, well: str) -> Iterator[Finding]:
    """The first few findings of a kind and `more` for all others; if there are none, that all is `well` in its area."""
    if not found:
        if more is not None:
            yield ok(more.area, well)
        return
    yield from found[:SHOWN]
    if more is not None and len(found) > SHOWN:
        yield more
