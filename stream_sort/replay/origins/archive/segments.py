"""Segments: an ordered range of one queue as a Parquet file, written and read. Same slots, same bytes.

Columns as those of slots, but for the queue: it stands in the file's metadata. Knows no Spark.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from stream_sort.errors import ArchiveDamaged, FileMissing, InvalidInput, StoreUnavailable
from stream_sort.replay.origins.archive.difference import first_difference
from stream_sort.replay.origins.archive.manifest import SEGMENT_LOST, Manifest, RowGroup
from stream_sort.replay.slots import SLOTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stream_sort.replay.files.readable import Readable
    from stream_sort.replay.files.storage import Storage
    from stream_sort.replay.ranges import Range

ROW_GROUP_ROWS = 20_000
# Large messages fill a row group before it has its rows: readers and writers hold one in memory.
ROW_GROUP_BYTES = 64 * 1024 * 1024
PIECE_BYTES = 8 * 1024 * 1024
ATTEMPTS = 5
COLUMNS = pa.schema([field for field in SLOTS if field.name != "queue"])
QUEUE = b"stream_sort.queue"
WRITING: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 1,
    "use_dictionary": ["skipped", "binary"],
    "column_encoding": {"seq": "DELTA_BINARY_PACKED", "arrived_at": "DELTA_BINARY_PACKED"},
    "write_statistics": ["seq", "arrived_at"],
    "version": "2.6",
    # A segment that is read in part is not compared with its sha256.
    "write_page_checksum": True,
}


class SegmentWriter:
    """Takes the slots of one range in order, and makes the segment and its manifest; both are held in memory."""

    def __init__(self, held: Range, row_group_rows: int = ROW_GROUP_ROWS) -> None:
        self._range = held
        self._most = row_group_rows
        self._sink = pa.BufferOutputStream()
        self._writer = pq.ParquetWriter(self._sink, COLUMNS.with_metadata({QUEUE: held.queue.encode()}), **WRITING)
        self._open: list[pa.RecordBatch] = []
        self._rows, self._bytes, self._tombstones = 0, 0, 0
        self._groups: list[RowGroup] = []

    def take(self, batch: pa.RecordBatch) -> None:
        """Add the next slots. Where row groups end depends on the slots alone, not on how they come in batches."""
        self._tombstones += batch.num_rows - batch.column("skipped").null_count
        batch = batch.select(COLUMNS.names)
        while batch.num_rows:
            fits = self._fitting(batch)
            self._open.append(batch.slice(0, fits))
            self._rows += fits
            batch = batch.slice(fits)
            if self._rows >= self._most or self._bytes >= ROW_GROUP_BYTES:
                self._close_group()

    def finish(self) -> tuple[Manifest, bytes]:
        """Return the manifest and the bytes of the segment."""
        if self._rows:
            self._close_group()
        self._writer.close()
        data = self._sink.getvalue().to_pybytes()
        times = [time for group in self._groups for time in (group.min_arrived_at, group.max_arrived_at)]
        known = [time for time in times if time is not None]
        manifest = Manifest(
            queue=self._range.queue,
            after=self._range.after,
            through=self._range.through,
            rows=sum(group.rows for group in self._groups),
            tombstones=self._tombstones,
            min_arrived_at=min(known, default=None),
            max_arrived_at=max(known, default=None),
            size=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            row_groups=tuple(self._groups),
        )
        return manifest, data

    def _fitting(self, batch: pa.RecordBatch) -> int:
        """Return how many rows of the batch belong to the open row group; counts their bytes."""
        batch = batch.slice(0, self._most - self._rows)
        item, late = (pc.fill_null(pc.binary_length(batch.column(name)), 0) for name in ("item", "late"))
        lengths = pc.add(item, late)
        total = pc.sum(lengths).as_py()
        if self._bytes + total < ROW_GROUP_BYTES:
            self._bytes += total
            return int(batch.num_rows)
        reached = pc.greater_equal(pc.cumulative_sum(lengths.cast(pa.int64())), ROW_GROUP_BYTES - self._bytes)
        self._bytes = ROW_GROUP_BYTES
        return int(pc.index(reached, value=True).as_py()) + 1

    def _close_group(self) -> None:
        # In one piece: where a page ends would depend on where a batch does.
        rows = pa.Table.from_batches(self._open).combine_chunks()
        self._writer.write_table(rows, row_group_size=self._rows)
        times = pc.min_max(rows.column("arrived_at")).as_py()
        self._groups.append(RowGroup(rows.column("seq")[0].as_py(), self._rows, times["min"], times["max"]))
        self._open, self._rows, self._bytes = [], 0, 0


def write_segment(storage: Storage, held: Range, batches: Iterable[pa.RecordBatch]) -> Manifest:
    """Store the segment of a range, then its manifest; again with the same slots changes nothing.

    Of runs at once that see other late messages, the first one's segment stays, and all write the manifest of that.
    """
    manifest, data = _made(held, batches)
    if storage.put_if_absent(manifest.data_name, data):
        storage.write(manifest.name, manifest.text())
        return manifest
    for _ in range(ATTEMPTS):
        found = _settled(storage, manifest, data)
        storage.write(found.name, found.text())
        # Somebody else may have written over the same remains.
        if _is_whole(storage, found):
            return found
    raise StoreUnavailable(
        f"{storage.address(manifest.data_name)}: another run of archive writes it at the same time; let that end, and "
        "run archive again"
    )


def read_segment(storage: Storage, manifest: Manifest, wanted: Range) -> Iterator[pa.RecordBatch]:
    """Yield the slots of a segment that are wanted, in order; ArchiveDamaged if it does not fit its manifest.

    A segment that is wanted whole is checked byte for byte. Of others, only the row groups in the range are read.
    """
    groups = [number for number, group in enumerate(manifest.row_groups) if _overlaps(group, wanted)]
    name = storage.address(manifest.data_name)
    rows = 0
    try:
        with _opened(storage, manifest, whole=len(groups) == len(manifest.row_groups)) as file:
            parquet = pq.ParquetFile(file, page_checksum_verification=True)
            _check(parquet, manifest, name)
            for batch in parquet.iter_batches(ROW_GROUP_ROWS, row_groups=groups, use_threads=False):
                rows += batch.num_rows
                yield _slots(batch, manifest.queue, wanted)
    except FileMissing as error:
        raise ArchiveDamaged(name, f"it is missing, and its manifest is there; {SEGMENT_LOST}") from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ArchiveDamaged(name, f"it is no readable Parquet file ({error}); {SEGMENT_LOST}") from error
    if rows != sum(manifest.row_groups[number].rows for number in groups):
        raise ArchiveDamaged(name, f"it holds other rows than its manifest says; {SEGMENT_LOST}")


def check_bytes(storage: Storage, manifest: Manifest) -> None:
    """Raise ArchiveDamaged unless a segment is, byte for byte, what its manifest tells of; holds little in memory."""
    name = storage.address(manifest.data_name)
    found, size = hashlib.sha256(), 0
    try:
        with storage.open(manifest.data_name) as file:
            while piece := file.read(PIECE_BYTES):
                found.update(piece)
                size += len(piece)
    except FileMissing as error:
        raise ArchiveDamaged(name, f"it is missing, and its manifest is there; {SEGMENT_LOST}") from error
    _check_sum(name, manifest, size, found.hexdigest())


def _made(held: Range, batches: Iterable[pa.RecordBatch]) -> tuple[Manifest, bytes]:
    writer = SegmentWriter(held)
    for batch in batches:
        writer.take(batch)
    return writer.finish()


def _settled(storage: Storage, manifest: Manifest, data: bytes) -> Manifest:
    """Return the manifest of what is there under a name that was taken; what no run can have made is written over."""
    there = storage.read(manifest.data_name)
    if there == data:
        return manifest
    found = _by_another(manifest.range, data, there)
    if found is None:
        storage.write(manifest.data_name, data)
    return found or manifest


def _by_another(held: Range, data: bytes, there: bytes) -> Manifest | None:
    """Return the manifest of a segment that differs by late messages only, which may come at any time, or None."""
    try:
        manifest, again = _made(held, _rows(there))
        whole = again == there and manifest.rows == len(held)
        return manifest if whole and first_difference(_rows(data), _rows(there)) is None else None
    except (pa.ArrowException, OSError, LookupError, ValueError, InvalidInput):
        return None


def _rows(data: bytes) -> Iterator[pa.RecordBatch]:
    file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
    yield from file.iter_batches(ROW_GROUP_ROWS, use_threads=False)


def _is_whole(storage: Storage, manifest: Manifest) -> bool:
    try:
        check_bytes(storage, manifest)
    except ArchiveDamaged:
        return False
    return True


def _check_sum(name: str, manifest: Manifest, size: int, sha256: str) -> None:
    if size != manifest.size:
        raise ArchiveDamaged(name, f"it has {size:,} bytes, and its manifest says {manifest.size:,}; {SEGMENT_LOST}")
    if sha256 != manifest.sha256:
        raise ArchiveDamaged(name, f"its sha256 is not that of its manifest: its content was changed; {SEGMENT_LOST}")


def _opened(storage: Storage, manifest: Manifest, *, whole: bool) -> pa.NativeFile | Readable:
    name = storage.address(manifest.data_name)
    if whole:
        data = storage.read(manifest.data_name)
        _check_sum(name, manifest, len(data), hashlib.sha256(data).hexdigest())
        return pa.BufferReader(data)
    file = storage.open(manifest.data_name)
    _check_sum(name, manifest, file.size(), manifest.sha256)
    return file


def _check(parquet: pq.ParquetFile, manifest: Manifest, name: str) -> None:
    found = parquet.metadata
    rows = [found.row_group(number).num_rows for number in range(found.num_row_groups)]
    queue = (parquet.schema_arrow.metadata or {}).get(QUEUE, b"").decode()
    fits = parquet.schema_arrow.equals(COLUMNS) and queue == manifest.queue
    if not fits or rows != [group.rows for group in manifest.row_groups]:
        raise ArchiveDamaged(name, f"its queue, columns or row groups are not those of its manifest; {SEGMENT_LOST}")


def _overlaps(group: RowGroup, wanted: Range) -> bool:
    return group.first_seq <= wanted.through and wanted.after < group.first_seq + group.rows - 1


def _slots(batch: pa.RecordBatch, queue: str, wanted: Range) -> pa.RecordBatch:
    """Return a batch with its queue, cut to the range; its seqs are contiguous, so places can be reckoned."""
    first = batch.column("seq")[0].as_py()
    start = max(0, wanted.after + 1 - first)
    batch = batch.slice(start, max(0, wanted.through - first + 1 - start))
    queues = pa.repeat(pa.scalar(queue, pa.string()), batch.num_rows)
    return pa.RecordBatch.from_arrays([queues, *batch.columns], schema=SLOTS)
