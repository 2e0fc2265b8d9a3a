"""Reads the data files of an export in a stream: checksum, item count and form are checked on the way.

Runs on executors. Memory is that of a few blocks, however long a file is.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from stream_sort.errors import ExportDamaged, FileMissing, InvalidInput, StoreError, shown
from stream_sort.replay.export.manifest import AGAIN
from stream_sort.replay.slots import SlotDecoder
from stream_sort.stores.dynamodb import tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.core.message import KeyNames
    from stream_sort.replay.export.manifest import DataFile, Export

# Of compressed bytes, which are about eight times as much text.
CHUNK = 256 * 1024
LINES_AT_ONCE = 4_096
# What zlib calls the gzip format.
GZIP = 31
NO_ITEM = "is not {'Item': ...}; is this an export in DynamoDB JSON?"
CHECK_KEYS = "check --queue-key and --seq-key, and who wrote it"
KEYS = pa.schema(
    [
        pa.field("queue", pa.string(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("tombstone", pa.bool_(), nullable=False),
        pa.field("late", pa.bool_(), nullable=False),
        pa.field("arrived_at", pa.int64()),
    ]
)


def read_keys(export: Export, file: DataFile, keys: KeyNames) -> Iterator[pa.RecordBatch]:
    """The places of a file's items in batches of KEYS, as they lie there; ExportDamaged at its end at the latest."""
    schema = _line_schema(keys)
    with _checked(export, file) as source:
        for block in source.blocks():
            if not block.strip():
                continue
            lines = pj.read_json(
                pa.BufferReader(block),
                read_options=pj.ReadOptions(use_threads=False, block_size=len(block) + 1),
                parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
            )
            for batch in lines.to_batches():
                yield _places(batch.column("Item"), keys, source.items + 1)
                source.items += batch.num_rows


def read_slots(export: Export, file: DataFile, keys: KeyNames) -> Iterator[pa.RecordBatch]:
    """The slots of a file in batches, as they lie there; ExportDamaged at its end at the latest."""
    decoder = SlotDecoder(keys)
    with _checked(export, file) as source:
        for block in source.blocks():
            lines = [line for line in block.split(b"\n") if line and not line.isspace()]
            for start in range(0, len(lines), LINES_AT_ONCE):
                items = _items(lines[start : start + LINES_AT_ONCE], source.items + 1)
                source.items += len(items)
                yield decoder.batch(items)


class _Unfit(ValueError):
    """A line that was exported as it is and still is not what we need: copying it again does not help."""


@dataclass(slots=True)
class _Source:
    """A file on its way through: sums up what is read of it."""

    raw: pa.NativeFile
    md5: Any = field(default_factory=lambda: hashlib.md5(usedforsecurity=False))
    items: int = 0

    def blocks(self) -> Iterator[bytes]:
        """The text, in blocks of whole lines."""
        rest = b""
        for text in self._inflated():
            end = text.rfind(b"\n") + 1
            if end:
                yield rest + text[:end]
                rest = text[end:]
            else:
                rest += text
        if rest:
            yield rest

    def chunks(self) -> Iterator[bytes]:
        """The bytes that were not read yet."""
        while chunk := bytes(self.raw.read(CHUNK)):
            self.md5.update(chunk)
            yield chunk

    def _inflated(self) -> Iterator[bytes]:
        inflater = None
        for chunk in self.chunks():
            left = chunk
            # Gzip streams may follow each other in one file.
            while left:
                inflater = inflater or zlib.decompressobj(GZIP)
                yield inflater.decompress(left)
                left = inflater.unused_data
                inflater = None if inflater.eof else inflater
        if inflater is not None:
            raise ValueError("the gzip stream breaks off: the file is truncated")


@contextmanager
def _checked(export: Export, file: DataFile) -> Iterator[_Source]:
    """What is wrong with the file comes out as ExportDamaged: a wrong checksum before whatever follows from it."""
    where = export.address(file)
    try:
        raw = export.storage.open(file.name)
    except FileMissing as error:
        raise ExportDamaged(where, f"not there any more; {AGAIN}") from error
    with raw:
        source = _Source(raw)
        try:
            yield source
        except (pa.ArrowInvalid, InvalidInput, StoreError, ValueError, zlib.error) as error:
            _check_md5(source, file, where)
            raise ExportDamaged(where, str(error) if isinstance(error, _Unfit) else f"{error}; {AGAIN}") from error
        _check_md5(source, file, where)
        if source.items != file.items:
            raise ExportDamaged(where, f"has {source.items:,} items, but its manifest says {file.items:,}; {AGAIN}")


def _check_md5(source: _Source, file: DataFile, where: str) -> None:
    for _ in source.chunks():
        pass
    md5 = source.md5.digest()
    if file.md5 is not None and md5 != file.md5:
        found, told = (base64.b64encode(one).decode() for one in (md5, file.md5))
        raise ExportDamaged(where, f"truncated or changed: its md5 is {found}, its manifest says {told}; {AGAIN}")


def _line_schema(keys: KeyNames) -> pa.Schema:
    """What is needed of a line to know its place, and whether it is a tombstone."""
    fields = [
        (keys.queue, pa.struct([("S", pa.string())])),
        (keys.seq, pa.struct([("N", pa.string())])),
        (tables.SKIPPED, pa.struct([("S", pa.string())])),
        (tables.LATE, pa.struct([("M", pa.struct([]))])),
        (tables.ARRIVED_AT, pa.struct([("N", pa.string())])),
    ]
    return pa.schema([("Item", pa.struct(fields))])


def _places(items: pa.StructArray, keys: KeyNames, first_line: int) -> pa.RecordBatch:
    queue, seq, skipped, late, arrived_at = items.flatten()
    queues, seqs = queue.flatten()[0], seq.flatten()[0]
    for array, problem in (
        (items, NO_ITEM),
        (queues, f"has no {keys.queue!r} of type S; {CHECK_KEYS}"),
        (seqs, f"has no {keys.seq!r} of type N; {CHECK_KEYS}"),
    ):
        if array.null_count:
            line = first_line + pc.index(array.is_null(), pa.scalar(value=True)).as_py()
            raise _Unfit(f"line {line} {problem}")
    columns = (
        queues,
        seqs.cast(pa.int64()),
        skipped.is_valid(),
        late.is_valid(),
        arrived_at.flatten()[0].cast(pa.int64()),
    )
    return pa.RecordBatch.from_arrays(list(columns), schema=KEYS)


def _items(lines: list[bytes], first_line: int) -> list[dict[str, Any]]:
    """The items of some lines; parsed as one list, which is faster than line by line."""
    try:
        documents = json.loads(b"[" + b",".join(lines) + b"]")
        if len(documents) == len(lines):
            return [document["Item"] for document in documents]
    except (KeyError, TypeError, ValueError):
        pass
    for number, line in enumerate(lines, first_line):
        try:
            json.loads(line)["Item"]
        except (KeyError, TypeError, ValueError):
            raise _Unfit(f"line {number} {NO_ITEM}: {shown(line, 120)}") from None
    raise ValueError(f"lines {first_line} to {first_line + len(lines) - 1} do not hold one item each")
