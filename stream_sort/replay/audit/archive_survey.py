"""What is in an archive, as an audit sees it: every segment is read and compared with its manifest, seq by seq."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from stream_sort.errors import ArchiveDamaged, FileMissing, InvalidInput, shown
from stream_sort.replay.audit.promised import Promises
from stream_sort.replay.audit.queues import RUNS, RunCollector
from stream_sort.replay.engine.report import some_notes
from stream_sort.replay.files.paths import decode_queue
from stream_sort.replay.files.storage import AT_ONCE
from stream_sort.replay.origins.archive.folder_state import SOME
from stream_sort.replay.origins.archive.folders import STRAY, folders, unfinished_notes
from stream_sort.replay.origins.archive.manifest import (
    LOST,
    QUEUES,
    SEGMENT_LOST,
    Manifest,
    check_end,
    folder_of,
    stored_manifest,
)
from stream_sort.replay.origins.archive.segments import read_segment
from stream_sort.replay.origins.export.order import Doubles
from stream_sort.replay.origins.origin import run_parts
from stream_sort.replay.ranges import Range, packed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import SparkSession

    from stream_sort.replay.audit.promised import Promise
    from stream_sort.replay.files.storage import Storage

# Bytes of segments that one task reads, at most; less where executors would have nothing to do.
TASK_BYTES = 64 * 1024 * 1024
ROWLESS = "its cursor row is lost: see stream-sort recover"
UNMARKED = "no watermark tells how far: the archive was copied or moved, or a run has died; run archive, which sets it"


@dataclass(frozen=True, slots=True)
class Damaged:
    """A file that cannot be trusted: whose it is, as far as that is known, how many slots it should hold, and why."""

    queue: str
    rows: int
    problem: str


class ArchiveSurvey:
    """Reads all segments of an archive, or of some of its queues. What is damaged is noted, and the rest goes on."""

    def __init__(
        self, storage: Storage, queues: tuple[str, ...] | None = None, promises: Promises | None = None
    ) -> None:
        self._storage = storage
        self._queues = queues
        self._promises = promises or Promises()
        self.damaged: list[Damaged] = []
        # Queues in which a run of archive is not finished.
        self.unfinished: list[str] = []
        # Queues with a watermark and no cursor row.
        self.rowless: list[str] = []
        # Queues that are archived, and no watermark tells how far.
        self.unmarked: list[str] = []
        self._manifests: list[Manifest] = []
        # How far segments must go, by the names of their manifests.
        self._ends: dict[str, int] = {}

    def runs(self, spark: SparkSession) -> Iterator[pa.RecordBatch]:
        """Yield the runs of all segments that can be trusted."""
        self._load()
        storage = self._storage
        share = sum(one.size for one in self._manifests) // spark.sparkContext.defaultParallelism + 1
        parts = packed(self._manifests, lambda one: one.size, min(TASK_BYTES, share))
        for runs, damaged in run_parts(spark, parts, lambda held: _look(storage, held)):
            self.damaged += damaged
            yield runs

    @property
    def notes(self) -> tuple[str, ...]:
        """What is said of queues beside findings; a few are named."""
        rowless, unmarked = (
            [f"queue {queue!r} is archived, and {why}" for queue in queues]
            for queues, why in ((self.rowless, ROWLESS), (self.unmarked, UNMARKED))
        )
        return (
            *unfinished_notes(self.unfinished),
            *some_notes(rowless, "{} more queues without their cursor rows"),
            *some_notes(unmarked, "{} more queues without a watermark"),
        )

    def conflicts(self, spark: SparkSession, queues: Iterable[str]) -> Doubles:
        """Return what two segments of these queues hold in two versions."""
        wanted = set(queues)
        of_queues = groupby((one for one in self._manifests if one.queue in wanted), key=lambda one: one.queue)
        pairs = [pair for _, held in of_queues for pair in _overlapping(list(held))]
        storage, doubles = self._storage, Doubles()
        for found in run_parts(spark, pairs, lambda pair: _compared(storage, *pair)):
            doubles.add(found)
        return doubles

    def _load(self) -> None:
        places = [QUEUES] if self._queues is None else [folder_of(queue) for queue in self._queues]
        names = [name for found in AT_ONCE.map(self._storage.list, places) for name in found]
        held = AT_ONCE.map(self._manifest, list(self._checked(names)))
        manifests = sorted((one for one in held if one is not None), key=lambda one: one.range)
        self._note_short(manifests)
        self._note_below(manifests)
        if not held and not self.damaged:
            raise InvalidInput(self._empty())
        self._manifests = manifests

    def _empty(self) -> str:
        uri, unfinished = self._storage.uri, "; ".join(unfinished_notes(self.unfinished))
        if self._queues and self._storage.list(QUEUES):
            told = ", ".join(map(shown, self._queues[:SOME]))
            more = f" and {len(self._queues) - SOME:,} more" if len(self._queues) > SOME else ""
            return f"the archive {uri} holds nothing of queue {told}{more}: {unfinished or 'check the names'}"
        return f"there is no archive at {uri}: {unfinished or 'check the address'}"

    def _checked(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the manifests among some names; what was planned and finished, and is not there, is noted."""
        for folder in folders(names, self._storage.list, self._storage.read):
            if folder.is_stray:
                self.damaged.append(Damaged("", 0, f"{self._storage.address(folder.name)}: {STRAY}"))
                continue
            if folder.damage is not None:
                problem = f"{self._storage.address(folder.name)}: {folder.damage.problem}"
                self.damaged.append(Damaged(folder.queue, 0, problem))
            if folder.unfinished:
                self.unfinished.append(folder.queue)
            self._ends |= folder.ends
            yield from folder.manifests

    def _note_short(self, manifests: Iterable[Manifest]) -> None:
        """Note segments that do not end where their marks say, if nothing worse is known: others took their places."""
        known = {one.queue for one in self.damaged}
        for manifest in (one for one in manifests if one.queue not in known):
            end = self._ends.get(manifest.name)
            try:
                check_end(manifest, end, self._storage.uri)
            except ArchiveDamaged as error:
                self.damaged.append(Damaged(manifest.queue, max(0, (end or 0) - manifest.through), str(error)))

    def _note_below(self, manifests: Iterable[Manifest]) -> None:
        """Note queues that lack their beginning, or end before their watermarks, if nothing worse is known."""
        known = {one.queue for one in self.damaged}
        by_queue = groupby(manifests, key=lambda one: one.queue)
        held = {
            queue: (found[0].after, found[-1].through) for queue, found in ((one, [*some]) for one, some in by_queue)
        }
        for queue, promise in self._promised({*held, *self.unfinished, *(self._queues or ())}).items():
            if queue not in known:
                self.damaged += _unkept(queue, promise, held.get(queue))
        self._note_unmarked({queue: end for queue, (_, end) in held.items() if queue not in known})

    def _note_unmarked(self, ends: Mapping[str, int]) -> None:
        """Note queues without a watermark: what is trimmed must be in the archive all the same."""
        for queue in self._promises.unmarked(ends):
            floor = self._promises.floors.get(queue)
            if floor is None or floor <= ends[queue]:
                self.unmarked.append(queue)
                continue
            told = (
                f"the table is trimmed up to seq {floor}, and the archive, of which it has no watermark, ends at "
                f"{ends[queue]}: what is between is not in it; restore that from a backup, or from its original"
            )
            self.damaged.append(Damaged(queue, floor - ends[queue], told))

    def _promised(self, queues: Iterable[str]) -> dict[str, Promise]:
        others = self._promises.without_rows(queues)
        self.rowless = sorted(others)
        return {**self._promises.made, **others}

    def _manifest(self, name: str) -> Manifest | None:
        try:
            return stored_manifest(self._storage, name)
        except ArchiveDamaged as error:
            self.damaged.append(Damaged(_queue_of(name), 0, str(error)))
            return None


def _unkept(queue: str, promise: Promise, held: tuple[int, int] | None) -> Iterator[Damaged]:
    """Yield what an archive has not of what it must hold of a queue."""
    after, end = held or (promise.after, promise.after)
    if promise.is_sure and after > promise.after:
        told = f"the archive began at seq {promise.after + 1}, and what is there begins at seq {after + 1}"
        yield Damaged(queue, after - promise.after, f"{told}; {LOST}")
    if end < promise.through:
        told = f"the watermark is {promise.through}, and the archive ends at {end if held else 'nothing'}"
        yield Damaged(queue, promise.through - end, f"{told}; {LOST}")


def _queue_of(name: str) -> str:
    """Return the queue in whose folder a file is."""
    return decode_queue(name.removeprefix(QUEUES).partition("/")[0]) or ""


def _look(storage: Storage, manifests: list[Manifest]) -> tuple[pa.RecordBatch, list[Damaged]]:
    found = RunCollector()
    damaged: list[Damaged] = []
    for manifest in manifests:
        try:
            found.take_runs(_segment_runs(storage, manifest))
        except ArchiveDamaged as error:
            damaged.append(Damaged(manifest.queue, manifest.rows, str(error)))
    return found.runs(), damaged


def _segment_runs(storage: Storage, manifest: Manifest) -> pa.RecordBatch:
    """Return the one run that a segment must be: its bytes are those its manifest tells of, and so are its seqs."""
    name = storage.address(manifest.data_name)
    try:
        data = storage.read(manifest.data_name)
        if len(data) != manifest.size or hashlib.sha256(data).hexdigest() != manifest.sha256:
            raise ArchiveDamaged(name, f"its size or sha256 is not that of its manifest; {SEGMENT_LOST}")
        # Not pq.read_table: it makes a dataset of the file first, which takes longer than to read it.
        held = pq.ParquetFile(pa.BufferReader(data)).read(["seq", "skipped", "late"], use_threads=False)
    except FileMissing as error:
        raise ArchiveDamaged(name, f"it is missing, and its manifest is there; {SEGMENT_LOST}") from error
    except (pa.ArrowException, OSError) as error:
        raise ArchiveDamaged(name, f"it is no readable Parquet file ({error}); {SEGMENT_LOST}") from error
    tombstones, late = (held.num_rows - held[name].null_count for name in ("skipped", "late"))
    if not _is_run(held["seq"].combine_chunks(), manifest) or tombstones != manifest.tombstones:
        raise ArchiveDamaged(name, f"its seqs or tombstones are not those of its manifest; {SEGMENT_LOST}")
    row = (manifest.queue, manifest.after + 1, manifest.through, held.num_rows, tombstones, late)
    return pa.RecordBatch.from_pylist([dict(zip(RUNS.names, row, strict=True))], schema=RUNS)


def _is_run(seqs: pa.Array, manifest: Manifest) -> bool:
    if len(seqs) != len(manifest.range) or seqs.null_count or not len(seqs):
        return False
    steps = pc.min_max(pc.subtract(seqs.slice(1), seqs.slice(0, len(seqs) - 1))).as_py()
    return seqs[0].as_py() == manifest.after + 1 and steps["min"] in {1, None} and steps["max"] in {1, None}


def _overlapping(manifests: list[Manifest]) -> Iterator[tuple[Manifest, Manifest]]:
    """Yield pairs of segments of one queue, sorted, that hold the same seqs."""
    for place, one in enumerate(manifests):
        for other in manifests[place + 1 :]:
            if other.after >= one.through:
                break
            yield one, other


def _compared(storage: Storage, one: Manifest, other: Manifest) -> Doubles:
    shared = Range(one.queue, max(one.after, other.after), min(one.through, other.through))
    doubles = Doubles()
    sides = [_slots(storage, manifest, shared) for manifest in (one, other)]
    for (seq, first), (_, second) in zip(*sides, strict=True):
        if first == second:
            doubles.again[one.queue] += 1
        else:
            doubles.conflict(one.queue, seq)
    return doubles


def _slots(storage: Storage, manifest: Manifest, shared: Range) -> Iterator[tuple[int, tuple[str | None, str | None]]]:
    for batch in read_segment(storage, manifest, shared):
        columns = (batch[name].to_pylist() for name in ("seq", "item", "skipped"))
        for seq, item, skipped in zip(*columns, strict=True):
            yield seq, (item, skipped)
