"""What the names in a queue's folder tell: what was planned, what is finished, and whether all of that is there. Pure.

The mark of a finished plan tells in its name where the plan begins and ends, and how many segments it has: a listing is
enough to see that one of them was lost.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from stream_sort.replay.archive.manifest import DATA, LOST, MANIFEST, PLANS, QUEUES, first_seq, is_manifest
from stream_sort.replay.files.paths import decode_queue, decode_seq, encode_seq

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_FINISHED = re.compile(r"(-?[0-9]{19})\.(-?[0-9]{19})\.([0-9]+)\.done")
# Queues that are named in notes.
SOME = 5
UNFINISHED = "a run of archive is not finished; what it has written so far is left out; run archive again"
_PLAN = re.compile(r"(-?[0-9]{19})\.json")


@dataclass(frozen=True, slots=True, order=True)
class Finished:
    """The mark of a plan whose segments were all written."""

    first: int
    through: int
    segments: int

    @property
    def file_name(self) -> str:
        """The name of the mark, among the plans."""
        return f"{encode_seq(self.first)}.{encode_seq(self.through)}.{self.segments}.done"


@dataclass(frozen=True, slots=True)
class Damage:
    """What is not whole, from `after` on; with its plan there, it can be written again as it was."""

    after: int
    problem: str
    planned: bool = False


@dataclass(frozen=True, slots=True)
class Shelf:
    """The plans, the marks and the segments of one queue; plans and segments by their first seqs."""

    plans: tuple[int, ...]
    finished: tuple[Finished, ...]
    segments: tuple[int, ...]

    @classmethod
    def of(cls, names: Iterable[str]) -> Shelf:
        """From the names in a queue's folder, sorted; a segment is there when its manifest is."""
        plans = [name.rpartition("/")[2] for name in names if PLANS in name]
        marks = [found for found in map(_FINISHED.fullmatch, plans) if found]
        return cls(
            tuple(sorted(decode_seq(found[1]) for found in map(_PLAN.fullmatch, plans) if found)),
            tuple(sorted(Finished(decode_seq(one[1]), decode_seq(one[2]), int(one[3])) for one in marks)),
            tuple(sorted(first_seq(name) for name in names if is_manifest(name))),
        )

    @property
    def end(self) -> int | None:
        """How far it is finished, None if nothing was ever planned."""
        if self.finished:
            return self.finished[-1].through
        return self.plans[0] - 1 if self.plans else None

    @property
    def readable(self) -> tuple[int, ...]:
        """The segments but for those of an unfinished plan: they come in any order, and may never be all there."""
        if not self.is_unfinished:
            return self.segments
        return self.segments[: bisect_left(self.segments, self.plans[-1])]

    @property
    def is_unfinished(self) -> bool:
        """Whether the newest plan is not finished: its run has died, or is under way."""
        return bool(self.plans) and self.plans[-1] not in {mark.first for mark in self.finished}

    def damage(self) -> Damage | None:
        """The first thing that was there, and is not any more. The newest plan may be unfinished."""
        marks = {mark.first: mark for mark in self.finished}
        begun = sorted({*marks, *self.plans})
        end: int | None = None
        for first in begun:
            if end is not None and first != end + 1:
                return Damage(end, f"after seq {end} no plan goes on, and there is one from seq {first}; {LOST}")
            mark = marks.get(first)
            problem = self._missing(mark) if mark else _UNMARKED if first != begun[-1] else ""
            if problem:
                return Damage(first - 1, f"from seq {first} on, {problem}; {LOST}", first in self.plans)
            end = mark.through if mark else None
        return None

    def _missing(self, mark: Finished) -> str:
        found = bisect_right(self.segments, mark.through) - bisect_left(self.segments, mark.first)
        if found >= mark.segments:
            return ""
        return f"{mark.segments - found} of the {mark.segments} segments up to seq {mark.through} are missing"


_UNMARKED = "a plan is not marked as finished, and another one follows it"


@dataclass(frozen=True, slots=True)
class Folder:
    """What there is to read of one queue: its manifests, and what is damaged. What a run still writes is left out."""

    name: str
    manifests: tuple[str, ...]
    damage: Damage | None
    unfinished: bool

    @property
    def queue(self) -> str:
        """Whose folder it is; empty if that cannot be told."""
        return decode_queue(self.name.removeprefix(QUEUES).rstrip("/")) or ""


def folders(names: Iterable[str], look: Callable[[str], Iterable[str]]) -> Iterator[Folder]:
    """The folders of some names; `look` lists a folder again."""
    by_folder: dict[str, list[str]] = {}
    for name in names:
        by_folder.setdefault(QUEUES + name.removeprefix(QUEUES).partition("/")[0] + "/", []).append(name)
    for folder, held in by_folder.items():
        shelf = settled(Shelf.of(held), partial(_shelf, look, folder))
        manifests = tuple(f"{folder}{encode_seq(first)}{MANIFEST}" for first in shelf.readable)
        yield Folder(folder, manifests, shelf.damage(), shelf.is_unfinished)


def unfinished_notes(queues: Iterable[str]) -> tuple[str, ...]:
    """What is said of queues whose newest plan is not finished; a few are named."""
    found = sorted(queues)
    told = [f"queue {queue!r}: {UNFINISHED}" for queue in found[:SOME]]
    if len(found) > SOME:
        told.append(f"and {len(found) - SOME:,} more queues with a run of archive that is not finished")
    return tuple(told)


def settled(shelf: Shelf, look: Callable[[], Shelf]) -> Shelf:
    """The shelf at a second look, if it seems damaged: names are listed one by one, while a run may write and mark."""
    damage = shelf.damage()
    while damage is not None:
        shelf = look()
        again = shelf.damage()
        if again is None or again.after == damage.after:
            return shelf
        damage = again
    return shelf


def with_data(names: Iterable[str]) -> list[str]:
    """The names without the manifests whose segments are missing."""
    there = set(names)
    return [name for name in names if not is_manifest(name) or name.removesuffix(MANIFEST) + DATA in there]


def _shelf(look: Callable[[str], Iterable[str]], folder: str) -> Shelf:
    return Shelf.of(look(folder))
