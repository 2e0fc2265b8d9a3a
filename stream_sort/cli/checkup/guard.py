"""Runs a check so that it never ends the others: what one may not read, or cannot, is said in a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.cli.checkup.asking import Unanswered
from stream_sort.cli.checkup.finding import Finding, not_checked
from stream_sort.errors import AccessDenied, CredentialsError, StreamSortError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


def guarded(
    area: str, check: Callable[[], Iterable[Finding]], fatal: type[StreamSortError] = CredentialsError
) -> Iterator[Finding]:
    """What a check finds; what it may not see, or cannot, is a finding, too."""
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
