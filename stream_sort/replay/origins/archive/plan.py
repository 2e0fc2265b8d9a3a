"""What an archive run sets out to write in one queue: fixed in the archive before anything is written.

Whoever runs after a crash finds the plan and writes the same segments, though more was released since.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.errors import ArchiveDamaged, FileMissing
from stream_sort.replay.files.json_content import value_of
from stream_sort.replay.files.paths import encode_seq
from stream_sort.replay.origins.archive.folder_state import Finished
from stream_sort.replay.origins.archive.manifest import LOST, MANIFEST, PLANS, folder_of, segment_name, stored_manifest
from stream_sort.replay.ranges import Range, range_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stream_sort.replay.files.storage import Storage

FORMAT = "stream_sort archive plan"
VERSION = 1


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """The segments of one run in one queue: the first begins after `after`, each ends at one of `ends`."""

    queue: str
    after: int
    ends: tuple[int, ...]

    @classmethod
    def of(cls, due: Range, segment_rows: int) -> SegmentPlan:
        """Full segments, and one with the rest."""
        return cls.along(due, (), segment_rows)

    @classmethod
    def along(cls, due: Range, there: Iterable[Range], segment_rows: int) -> SegmentPlan:
        """Return the same between and behind segments that are there, sorted: those keep their places."""
        ends: list[int] = []
        at = due.after
        for held in there:
            ends += (*_ends(at, held.after, segment_rows), *([held.through] if len(held) else []))
            at = held.through
        return cls(due.queue, due.after, (*ends, *_ends(at, due.through, segment_rows)))

    @property
    def first(self) -> int:
        """Where it begins."""
        return self.after + 1

    @property
    def through(self) -> int:
        """How far it goes."""
        return self.ends[-1]

    @property
    def finished(self) -> Finished:
        """What its mark says."""
        return Finished(self.first, self.through, len(self.ends))

    @property
    def segments(self) -> list[Range]:
        """The range of each segment, in order."""
        starts = (self.after, *self.ends)
        return [Range(self.queue, start, end) for start, end in zip(starts, self.ends, strict=False)]

    @property
    def name(self) -> str:
        """The name of the plan's file: one for each place where a run can begin."""
        return plan_name(folder_of(self.queue), self.first)

    @property
    def mark(self) -> str:
        """The name of the file that says that all its segments were written."""
        return _plans_in(folder_of(self.queue)) + self.finished.file_name

    def text(self) -> bytes:
        """Return the plan as it is stored."""
        document = {"format": FORMAT, "version": VERSION, "queue": self.queue, "after": self.after, "ends": self.ends}
        return (json.dumps(document, ensure_ascii=False) + "\n").encode()


def fix(storage: Storage, plan: SegmentPlan) -> tuple[SegmentPlan, bool]:
    """Return the plan that counts, and whether it is new: an earlier one from the same place stays."""
    if storage.put_if_absent(plan.name, plan.text()):
        return plan, True
    return stored_plan(storage.read, folder_of(plan.queue), plan.first), False


def stored_plan(read: Callable[[str], bytes], folder: str, first: int) -> SegmentPlan:
    """Return the plan that begins at a seq, in a queue's folder; ArchiveDamaged for what is none, or another one's."""
    name = plan_name(folder, first)
    plan = _parsed(read(name), name)
    if (folder_of(plan.queue), plan.first) != (folder, first):
        raise ArchiveDamaged(name, "it is the plan of another range; two archives were mixed")
    return plan


def mark_finished(storage: Storage, plan: SegmentPlan) -> None:
    """Say that all segments of a plan were written: from now on, one that is not there was lost."""
    storage.put_if_absent(plan.mark, plan.text())


def is_written(storage: Storage, held: Range) -> bool:
    """Return True if a segment and its manifest are there, as far as names and sizes tell."""
    name = segment_name(held) + MANIFEST
    try:
        manifest = stored_manifest(storage, name)
    except (FileMissing, ArchiveDamaged):
        # It is written anew.
        return False
    return manifest.range == held and storage.size(manifest.data_name) == manifest.size


def plan_name(folder: str, first: int) -> str:
    """Return the name of the plan that begins at a seq."""
    return f"{_plans_in(folder)}{encode_seq(first)}{MANIFEST}"


def _ends(after: int, through: int, segment_rows: int) -> tuple[int, ...]:
    """Return where the segments end that fill a range."""
    if through <= after:
        return ()
    return (*range(after + segment_rows, through, segment_rows), through)


def _plans_in(folder: str) -> str:
    return folder.rstrip("/") + PLANS


def _parsed(content: bytes, address: str) -> SegmentPlan:
    try:
        document = value_of(content)
        kind = document["format"], document["version"]
        plan = SegmentPlan(document["queue"], document["after"], tuple(document["ends"]))
        sound = all(len(range_of(held.queue, held.after, held.through)) > 0 for held in plan.segments)
        sound = sound and plan.through > plan.after
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise ArchiveDamaged(address, f"it is no plan of an archive run ({error}); {LOST}") from error
    if kind != (FORMAT, VERSION) or not sound:
        raise ArchiveDamaged(address, f"it is no plan that version {VERSION} can follow; {LOST}")
    return plan
