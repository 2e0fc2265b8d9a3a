"""Which queues a command is about: some by name, those of a pattern, or all; and times as people read them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

import typer

from stream_sort.errors import InvalidInput
from stream_sort.model.message import check_queue

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMED = 5

Queues = Annotated[list[str] | None, typer.Argument(metavar="QUEUE", help="The queues that are meant.")]
Match = Annotated[str | None, typer.Option("--match", metavar="PATTERN", help="Queues by a pattern, such as 'ada-*'.")]
Everything = Annotated[bool, typer.Option("--all", help="All queues.")]


@dataclass(frozen=True, slots=True)
class Choice:
    """Queues by name, by a pattern, or all of them."""

    queues: tuple[str, ...] = ()
    pattern: str | None = None

    @classmethod
    def of(cls, queues: Sequence[str] | None, match: str | None, *, everything: bool) -> Choice:
        """What a command that changes something was given: exactly one of the three."""
        if bool(queues) + (match is not None) + everything != 1:
            raise InvalidInput("which queues? Name them, or give --match PATTERN, or --all; one of the three")
        return cls(tuple(dict.fromkeys(map(check_queue, queues or ()))), match)

    @classmethod
    def to_look_at(cls, queues: Sequence[str] | None, match: str | None) -> Choice:
        """What a command that only shows something was given: all, if nothing."""
        return cls.of(queues, match, everything=not queues and match is None)

    @property
    def is_all(self) -> bool:
        """Whether no queue is left out."""
        return not self.queues and self.pattern is None

    def takes(self, queue: str) -> bool:
        """Whether a queue is meant."""
        if self.queues:
            return queue in self.queues
        return self.pattern is None or fnmatchcase(queue, self.pattern)


def some_of(names: Sequence[str]) -> str:
    """The first few of many names."""
    told = ", ".join(names[:NAMED])
    return told if len(names) <= NAMED else f"{told} and {len(names) - NAMED:,} more"


def counted(count: int, noun: str) -> str:
    """A number of things."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def moment(seconds: float | None) -> str:
    """A time, in UTC."""
    return "" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}Z"
