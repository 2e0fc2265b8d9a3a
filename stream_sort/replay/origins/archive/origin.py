"""An archive as an origin: manifests say what there is, segments are read by name and in order."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

from stream_sort.errors import ArchiveDamaged, InvalidInput
from stream_sort.replay.files.storage import AT_ONCE
from stream_sort.replay.origins.archive.folders import STRAY, UNFINISHED, folders, unfinished_notes
from stream_sort.replay.origins.archive.manifest import (
    DATA,
    LOST,
    MANIFEST,
    QUEUES,
    Manifest,
    check_end,
    check_sequence,
    first_seq,
    folder_of,
    is_manifest,
    stored_manifest,
)
from stream_sort.replay.origins.archive.segments import check_bytes, read_segment
from stream_sort.replay.origins.origin import run_parts
from stream_sort.replay.ranges import Range, Selection, clipped, joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from stream_sort.replay.files.storage import Storage
    from stream_sort.replay.origins.origin import Work
    from stream_sort.replay.ranges import Part


@dataclass(frozen=True, slots=True)
class SegmentReader:
    """Reads ranges from segments whose manifests it has; goes to an executor with those that one part needs."""

    storage: Storage
    manifests: tuple[Manifest, ...]

    def read(self, wanted: Range) -> Iterator[pa.RecordBatch]:
        """Yield the slots of a range, in order; what no segment holds is left out."""
        for manifest in self.manifests:
            if _meet(manifest.range, wanted):
                yield from read_segment(self.storage, manifest, wanted)


@dataclass(frozen=True)
class ArchiveOrigin:
    """What the selection wants of an archive. Its manifests are read once, on the driver."""

    storage: Storage
    selection: Selection = field(default_factory=Selection)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def ranges(self, spark: SparkSession | None = None) -> list[Range]:  # noqa: ARG002  # manifests need no Spark
        """Plan by the manifests alone, of which none may overlap, or leave a gap; by time, down to row groups.

        Whoever wants exact times looks at the rows as well.
        """
        held = self.manifests()
        if self.selection.by_time:
            whole = [group for manifest in held for group in manifest.timed(self.selection)]
        else:
            whole = [manifest.range for manifest in held]
        return clipped(self.selection, joined(whole))

    def run(self, spark: SparkSession, parts: Sequence[Part], work: Work) -> Iterator[Any]:
        """See Origin."""
        readers = [(part, self.reader(part.ranges)) for part in parts]

        def task(both: tuple[Part, SegmentReader]) -> Any:
            part, reader = both
            return work(part, (batch for wanted in part.ranges for batch in reader.read(wanted)))

        return run_parts(spark, readers, task)

    def reader(self, ranges: Iterable[Range]) -> SegmentReader:
        """Return a reader of these ranges only, small enough to go to a task."""
        by_queue = self._by_queue
        needed = {manifest.name: manifest for wanted in ranges for manifest in _needed(by_queue, wanted)}
        return SegmentReader(self.storage, tuple(needed.values()))

    def read(self, wanted: Range) -> Iterator[pa.RecordBatch]:
        """Yield the slots of a range, in order; where manifests are not known, those of its segments are read."""
        yield from SegmentReader(self.storage, tuple(map(self._manifest, self._names_of(wanted)))).read(wanted)

    def check_holds(self, wanted: Range) -> None:
        """Raise ArchiveDamaged unless the archive has all of a range, byte for byte; reads its segments whole."""
        found = [self._manifest(name) for name in self._names_of(wanted)]
        check_sequence(found, self.storage.uri)
        if not found or found[0].after > wanted.after or found[-1].through < wanted.through:
            raise ArchiveDamaged(
                self.storage.address(folder_of(wanted.queue)),
                f"it does not hold all of ({wanted.after}, {wanted.through}] of queue {wanted.queue!r}; {LOST}",
            )
        for manifest in found:
            check_bytes(self.storage, manifest)

    def manifests(self) -> list[Manifest]:
        """Return the manifests of the selected queues by queue and seq, each checked, and all together."""
        return [manifest for held in self._by_queue.values() for manifest in held]

    @property
    def notes(self) -> tuple[str, ...]:
        """What to say of it beside what it holds: queues in which a run is not finished."""
        by_queue, unfinished = self._loaded
        return unfinished_notes(unfinished) if by_queue else ()

    @property
    def _by_queue(self) -> dict[str, list[Manifest]]:
        return self._loaded[0]

    @cached_property
    def _loaded(self) -> tuple[dict[str, list[Manifest]], set[str]]:
        """The manifests of each queue, and the queues in which a run is not finished."""
        chosen = self.selection.queues or self.selection.only
        folders = [QUEUES] if chosen is None else [folder_of(queue) for queue in sorted(chosen)]
        unfinished, ends = set[str](), dict[str, int]()
        names = [name for found in AT_ONCE.map(self.storage.list, folders) for name in found]
        held = sorted(
            AT_ONCE.map(self._manifest, list(self._checked(names, ends, unfinished))), key=lambda one: one.range
        )
        by_queue = {queue: list(found) for queue, found in groupby(held, key=lambda one: one.queue)}
        for found in by_queue.values():
            check_sequence(found, self.storage.uri)
        for manifest in held:
            check_end(manifest, ends.get(manifest.name), self.storage.uri)
        for queue in self.selection.queues or ():
            if queue not in by_queue:
                why = UNFINISHED if queue in unfinished else "check its name"
                raise InvalidInput(f"queue {queue!r} has no segment in the archive {self.storage.uri}: {why}")
        if not by_queue and chosen is None:
            why = "; ".join(unfinished_notes(unfinished)) or "check the address"
            raise InvalidInput(f"there is no archive at {self.storage.uri}: {why}")
        return by_queue, unfinished

    def _names_of(self, wanted: Range) -> list[str]:
        """Return the manifests that meet a range: names are sorted and say where each segment begins."""
        names = list(filter(is_manifest, self.storage.list(folder_of(wanted.queue))))
        starts = [first_seq(name) for name in names]
        start = max(0, bisect_right(starts, wanted.after + 1) - 1)
        return names[start : bisect_right(starts, wanted.through)]

    def _checked(self, names: Sequence[str], ends: dict[str, int], unfinished: set[str]) -> Iterator[str]:
        """Yield the manifests among some names, and where marks say that they end; raises at what was lost."""
        there = set(names)
        for folder in folders(names, self.storage.list, self.storage.read):
            if folder.is_stray:
                raise ArchiveDamaged(self.storage.address(folder.name), STRAY)
            for name in folder.manifests:
                data = name.removesuffix(MANIFEST) + DATA
                if data not in there and not self.storage.exists(data):
                    told = f"it is missing, and its manifest is there; {LOST}"
                    raise ArchiveDamaged(self.storage.address(data), told)
            if folder.damage is not None:
                raise ArchiveDamaged(self.storage.address(folder.name), folder.damage.problem)
            if folder.unfinished:
                unfinished.add(folder.queue)
            ends |= folder.ends
            yield from folder.manifests

    def _manifest(self, name: str) -> Manifest:
        return stored_manifest(self.storage, name)


def _needed(by_queue: dict[str, list[Manifest]], wanted: Range) -> Iterator[Manifest]:
    """Yield the manifests whose segments meet a range; those of a queue are sorted."""
    held = by_queue.get(wanted.queue, [])
    at = max(0, bisect_right(held, wanted.after, key=lambda one: one.after) - 1)
    while at < len(held) and held[at].after < wanted.through:
        if _meet(held[at].range, wanted):
            yield held[at]
        at += 1


def _meet(one: Range, other: Range) -> bool:
    return one.queue == other.queue and one.after < other.through and other.after < one.through
