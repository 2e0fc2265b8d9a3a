"""What a check finds: a level, a sentence, and what to do about it; and a guard, so that no check ends the others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from stream_sort.errors import AccessDenied, CredentialsError, StreamSortError, shown
from stream_sort.insight.checkup.aws import Unanswered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

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
        """Return True if something is broken."""
        return any(one.level is Level.FAIL for one in self.findings)

    @property
    def counts(self) -> dict[str, int]:
        """Count the findings of each level."""
        counted = Counter(one.level for one in self.findings)
        return {level.value: counted[level] for level in Level}

    @property
    def summary(self) -> str:
        """Return the same in a line."""
        told = ", ".join(f"{count:,} {level}" for level, count in self.counts.items() if count)
        return f"{len(self.findings):,} checks: {told}"


def ok(area: str, text: str) -> Finding:
    """Note that all is well."""
    return Finding(area, Level.OK, text)


def warn(area: str, text: str, remedy: str) -> Finding:
    """Note what somebody should look at."""
    return Finding(area, Level.WARN, text, remedy)


def fail(area: str, text: str, remedy: str) -> Finding:
    """Note what does not work."""
    return Finding(area, Level.FAIL, text, remedy)


def not_checked(area: str, why: str) -> Finding:
    """Note what nobody could see."""
    return Finding(area, Level.NOT_CHECKED, why)


def first_of(found: Sequence[Finding], more: Finding | None, well: str) -> Iterator[Finding]:
    """Yield the first few findings of a kind and `more` for all others; if there are none, that all is `well`."""
    if not found:
        if more is not None:
            yield ok(more.area, well)
        return
    yield from found[:SHOWN]
    if more is not None and len(found) > SHOWN:
        yield more


def guarded(
    area: str, check: Callable[[], Iterable[Finding]], fatal: type[StreamSortError] = CredentialsError
) -> Iterator[Finding]:
    """Run a check; what it may not see, or cannot, is a finding, too."""
    try:
        yield from check()
    except (fatal, CredentialsError):
        raise
    except AccessDenied as problem:
        yield not_checked(area, f"needs dynamodb:{problem.operation} on {problem.table}")
    except (StreamSortError, Unanswered) as problem:
        yield not_checked(area, str(problem))
    except Exception as problem:  # noqa: BLE001  # a bug in one check is told, and ends no other
        yield not_checked(area, f"unexpected {shown(problem, 200)}; this is a bug in stream_sort, please report it")
