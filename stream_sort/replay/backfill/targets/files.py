"""A part into one file, Parquet or JSON lines: published whole or not at all, always with the same bytes."""

from __future__ import annotations

import gzip
import mmap
import tempfile
from contextlib import closing
from dataclasses import dataclass, replace
from json.encoder import encode_basestring as quoted
from typing import IO, TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from stream_sort.errors import MissingItems
from stream_sort.replay.backfill.ledger import PartRecord
from stream_sort.replay.backfill.tally import RangeTally
from stream_sort.replay.completeness import Completeness, by_range
from stream_sort.replay.ranges import Range
from stream_sort.replay.slots import MESSAGES, in_time, messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stream_sort.replay.backfill.ledger import Ledger
    from stream_sort.replay.files.storage import Storage
    from stream_sort.replay.ranges import Part, Selection


GROUP_ROWS = 50_000
GROUP_BYTES = 64 * 1024 * 1024
GZIP_LEVEL = 6
BLOCK_BYTES = 1024 * 1024


def file_name(number: int, form: str) -> str:
    """Return the name of a part's file; names sort as the parts do."""
    return f"part-{number:07d}.{form}"


@dataclass(frozen=True, slots=True)
class FileWork:
    """Writes the messages of a part to its file, then the part's record.

    Any number of attempts may do it at once, and die anywhere: each publishes the same bytes under the same name.
    A part with a hole is not published unless holes are allowed.
    """

    out: Storage
    ledger: Ledger
    form: str
    selection: Selection
    may_have_holes: bool

    def __call__(self, part: Part, slots: Iterator[pa.RecordBatch]) -> PartRecord:
        """Do one part."""
        # A file without a name: nothing is left of it, whatever becomes of this process.
        with tempfile.TemporaryFile() as file:
            try:
                with closing(WRITERS[self.form](file)) as writer:
                    tallies = tuple(
                        self._copy(wanted, own, writer).with_conflicts(RangeTally.of(wanted), slots)
                        for wanted, own in by_range(part, slots)
                    )
            except MissingItems as hole:
                return PartRecord(part.number, (_failed(part, hole),), ended=False)
            file.flush()
            size = self._publish(file_name(part.number, self.form), file)
        record = PartRecord(part.number, tallies, ended=True, size=size)
        self.ledger.commit(record)
        return record

    def _copy(self, wanted: Range, own: Iterator[pa.RecordBatch], writer: ParquetFile | JsonLinesFile) -> RangeTally:
        watch = Completeness(wanted, may_have_holes=self.may_have_holes)
        rows = outside = tombstones = 0
        for batch in watch.watched(own):
            inside = in_time(batch, self.selection)
            found = messages(inside)
            writer.write(found)
            rows += found.num_rows
            outside += batch.num_rows - inside.num_rows
            tombstones += inside.num_rows - found.num_rows
        return replace(
            RangeTally.of(wanted),
            done=wanted.through,
            rows=rows,
            tombstones=tombstones,
            outside=outside,
            missing=tuple(watch.holes),
        )

    def _publish(self, name: str, file: IO[Any]) -> int:
        size = file.seek(0, 2)
        if not size:
            self.out.write(name, b"")
            return 0
        # Not read into memory: a part may be larger than that.
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            self.out.write(name, cast("bytes", content))
        return size


def _failed(part: Part, hole: MissingItems) -> RangeTally:
    missing = tuple(Range(hole.queue, gap.start - 1, gap.stop - 1) for gap in hole.missing)
    inside = (one for one in part.ranges if one.queue == hole.queue and one.after <= missing[0].after <= one.through)
    return replace(RangeTally.of(next(inside)), missing=missing, failed=str(hole))


class ParquetFile:
    """Columns queue, seq, item; zstd.

    Row groups end after so many rows or bytes, whatever the batches are, and go to the file in one piece.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._writer = pq.ParquetWriter(file, MESSAGES, compression="zstd")
        self._start_group()

    def write(self, batch: pa.RecordBatch) -> None:
        """Add messages."""
        while batch.num_rows:
            count, size = self._fitting(batch)
            self._group.append(batch.slice(0, count))
            self._rows += count
            self._bytes += size
            batch = batch.slice(count)
            if self._rows >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
                self._end_group()

    def close(self) -> None:
        """Write what is left."""
        if self._rows:
            self._end_group()
        self._writer.close()

    def _fitting(self, batch: pa.RecordBatch) -> tuple[int, int]:
        """Return how many rows still go into the group, and their bytes; the one that fills it goes in."""
        head = batch.slice(0, GROUP_ROWS - self._rows)
        sizes = pc.cumulative_sum(pc.cast(pc.binary_length(head.column("item")), pa.int64()))
        below: int = pc.sum(pc.less(sizes, GROUP_BYTES - self._bytes)).as_py()
        count = min(below + 1, head.num_rows)
        return count, sizes[count - 1].as_py()

    def _start_group(self) -> None:
        self._group: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def _end_group(self) -> None:
        whole = pa.Table.from_batches(self._group, MESSAGES).combine_chunks()
        self._writer.write_table(whole, row_group_size=self._rows)
        self._start_group()


class JsonLinesFile:
    """One line a message: its queue, its seq and the message itself."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, batch: pa.RecordBatch) -> None:
        """Add messages."""
        columns = (column.to_pylist() for column in batch.columns)
        lines = (
            f'{{"queue":{quoted(queue)},"seq":{seq},"item":{item}}}\n'
            for queue, seq, item in zip(*columns, strict=True)
        )
        self._file.write("".join(lines).encode())

    def close(self) -> None:
        """Write what is left."""


class GzipLinesFile(JsonLinesFile):
    """The same, compressed; without the time of day and a file name, which gzip would note."""

    def __init__(self, file: IO[bytes]) -> None:
        self._blocks = _Blocks(gzip.GzipFile(filename="", mode="wb", compresslevel=GZIP_LEVEL, fileobj=file, mtime=0))
        super().__init__(cast("IO[bytes]", self._blocks))

    def close(self) -> None:
        """Write what is left."""
        self._blocks.close()


class _Blocks:
    """Hands bytes on in blocks of one size: how a compressor is fed may show in what it makes of it."""

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file = file
        self._held = bytearray()

    def write(self, content: bytes) -> None:
        self._held += content
        whole = len(self._held) - len(self._held) % BLOCK_BYTES
        for start in range(0, whole, BLOCK_BYTES):
            self._file.write(self._held[start : start + BLOCK_BYTES])
        del self._held[:whole]

    def close(self) -> None:
        self._file.write(self._held)
        self._file.close()


WRITERS: dict[str, Callable[[IO[bytes]], ParquetFile | JsonLinesFile]] = {
    "parquet": ParquetFile,
    "jsonl": JsonLinesFile,
    "jsonl.gz": GzipLinesFile,
}
