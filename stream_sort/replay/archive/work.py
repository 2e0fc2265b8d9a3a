"""What an archive run writes: segments, on the executors; and along which segments that are there a plan goes."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.errors import ArchiveDamaged, FileMissing, StoreMisconfigured, StoreUnavailable, StreamSortError
from stream_sort.replay.completeness import Completeness
from stream_sort.replay.origins.archive.manifest import (
    MANIFEST,
    first_seq,
    folder_of,
    is_manifest,
    segment_name,
    stored_manifest,
)
from stream_sort.replay.origins.archive.plan import plan_name
from stream_sort.replay.origins.archive.segments import check_bytes, write_segment
from stream_sort.replay.ranges import Range

if TYPE_CHECKING:
    from stream_sort.replay.files.storage import Storage
    from stream_sort.replay.origins.archive.manifest import Manifest
    from stream_sort.replay.origins.origin import RangeReader
    from stream_sort.replay.ranges import Part

# What no other range can escape.
HOPELESS = (StoreMisconfigured, StoreUnavailable)


@dataclass(frozen=True, slots=True)
class Written:
    """What became of one segment; `problem` says why it was not written."""

    held: Range
    tombstones: int = 0
    size: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class WriteSegments:
    """Writes a segment for each range of a part. A hole in one keeps no other out."""

    reader: RangeReader
    storage: Storage

    def __call__(self, part: Part) -> list[Written]:
        """Write a segment for each range, and answer for it; again, it writes the same bytes."""
        return [self._write(held) for held in part.ranges]

    def _write(self, held: Range) -> Written:
        try:
            manifest = write_segment(self.storage, held, Completeness(held).watched(self.reader.read(held)))
        except HOPELESS:
            raise
        except StreamSortError as error:
            found = self._by_others(held)
            if found is None:
                return Written(held, problem=str(error))
            manifest = found
        return Written(held, manifest.tombstones, manifest.size)

    def _by_others(self, held: Range) -> Manifest | None:
        """Return the segment if another run has written it whole, and perhaps trimmed its slots while we read them."""
        name = segment_name(held) + MANIFEST
        try:
            manifest = stored_manifest(self.storage, name)
            check_bytes(self.storage, manifest)
        except (FileMissing, ArchiveDamaged):
            return None
        return manifest if manifest.range == held else None


def unplanned(storage: Storage, wanted: Range, room: int | None, released: int) -> list[Range]:
    """Return what the segments hold that lie where a plan is to begin, sorted; nothing if it is there.

    No plan may go beyond `room`. An empty range says where a segment begins that is to be written anew.
    ArchiveDamaged where no plan can go along them.
    """
    folder, end = folder_of(wanted.queue), wanted.after
    names = list(filter(is_manifest, storage.list(folder)))
    # In this order: whoever writes segments has fixed their plan before.
    if storage.exists(plan_name(folder, wanted.after + 1)):
        return []
    starts = [first_seq(name) for name in names]
    # The one before may go on beyond where the plan begins.
    some = slice(max(0, bisect_right(starts, wanted.after) - 1), None if room is None else bisect_right(starts, room))
    limit = released if room is None else min(released, room)
    found: list[Range] = []
    for name in names[some]:
        held = _held(storage, wanted.queue, name)
        if held.through <= wanted.after and held.after < wanted.after:
            continue
        if held.after < end or held.through > limit:
            raise ArchiveDamaged(storage.address(name), _describe(held, wanted, end, limit))
        found.append(held)
        end = held.through
    return found


def _held(storage: Storage, queue: str, name: str) -> Range:
    try:
        return stored_manifest(storage, name).range
    except (ArchiveDamaged, FileMissing):
        return Range(queue, first_seq(name) - 1, first_seq(name) - 1)


def _describe(held: Range, wanted: Range, end: int, limit: int) -> str:
    if held.after < wanted.after:
        return (
            f"it goes on to seq {held.through}, and no plan goes beyond {wanted.after}: put plans back from a backup, "
            "or begin another archive"
        )
    why = f"others go on to {end}" if held.after < end else f"nothing may go beyond {limit}"
    return (
        f"it holds seqs {held.after + 1} to {held.through}, {why}, and no plan tells what counts. Nothing from seq "
        f"{wanted.after + 1} on was trimmed: put the plans back from a backup, or delete all files of the queue from "
        "there on, and archive writes them again"
    )
