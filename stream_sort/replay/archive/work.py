"""What an archive run does on the executors: it writes segments, and says what became of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.errors import ArchiveDamaged, FileMissing, StoreMisconfigured, StoreUnavailable, StreamSortError
from stream_sort.replay.completeness import Completeness
from stream_sort.replay.origins.archive.manifest import MANIFEST, parse, segment_name
from stream_sort.replay.origins.archive.segments import check_bytes, write_segment

if TYPE_CHECKING:
    from stream_sort.replay.files.storage import Storage
    from stream_sort.replay.origins.archive.manifest import Manifest
    from stream_sort.replay.origins.origin import RangeReader
    from stream_sort.replay.ranges import Part, Range

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
            manifest = parse(self.storage.read(name), name, self.storage.address(name))
            check_bytes(self.storage, manifest)
        except (FileMissing, ArchiveDamaged):
            return None
        return manifest if manifest.range == held else None
