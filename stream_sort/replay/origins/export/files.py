"""Reads the data files of an export in a stream: checksum, item count and form are checked on the way.

Runs on executors. Memory is that of a few blocks, however long a file is.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stream_sort.errors import (
    ExportDamaged,
    FileMissing,
    InvalidInput,
    StoreError,
    StoreMisconfigured,
    StoreUnavailable,
)
from stream_sort.replay.origins.export.columns import PlainLines
from stream_sort.replay.origins.export.lines import Unfit, check_lines, items_of, line_schema, parsed, places, slots_of
from stream_sort.replay.origins.export.manifest import AGAIN
from stream_sort.replay.slots import SlotDecoder

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from stream_sort.model.message import KeyNames
    from stream_sort.replay.files.readable import Readable
    from stream_sort.replay.origins.export.manifest import DataFile, Export

# Of compressed bytes, which are about eight times as much text.
CHUNK = 256 * 1024
LINES_AT_ONCE = 4_096
# What zlib calls the gzip format.
GZIP = 31
# What readers of Arrow, of gzip and of DynamoDB's JSON raise for what is none of it.
MALFORMED = (
    *(pa.ArrowException, InvalidInput, StoreError, zlib.error),
    *(ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError),
)


def read_keys(
    export: Export, file: DataFile, keys: KeyNames, no_slot: Counter[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the places of a file's items in batches of KEYS, as they lie there; ExportDamaged at its end at the latest.

    Items in no slot are left out; `no_slot` counts them by queue.
    """
    schema = line_schema(keys)
    with _checked(export, file) as source:
        for block in source.blocks():
            if not block.strip():
                continue
            check_lines(block, source.items + 1)
            items = parsed(block, schema, "ignore")
            yield places(items, keys, source.items + 1, no_slot)
            source.items += len(items)


def read_slots(export: Export, file: DataFile, keys: KeyNames) -> Iterator[pa.RecordBatch]:
    """Yield the slots of a file in batches, as they lie there; ExportDamaged at its end at the latest."""
    decoder, plain = SlotDecoder(keys), PlainLines(keys)
    with _checked(export, file) as source:
        for block in source.blocks():
            if slots := plain.slots(block):
                source.items += slots.num_rows
                yield slots
                continue
            lines = [line for line in block.split(b"\n") if line and not line.isspace()]
            for start in range(0, len(lines), LINES_AT_ONCE):
                first_line = source.items + 1
                items = items_of(lines[start : start + LINES_AT_ONCE], first_line)
                source.items += len(items)
                yield slots_of(items, keys, decoder, first_line)
                plain.learn(items)


@dataclass(slots=True)
class _Source:
    """A file on its way through: sums up what is read of it."""

    raw: Readable
    md5: Any = field(default_factory=lambda: hashlib.md5(usedforsecurity=False))
    items: int = 0

    def blocks(self) -> Iterator[bytes]:
        """Yield the text, in blocks of whole lines."""
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
        """Yield the bytes that were not read yet."""
        while chunk := self.raw.read(CHUNK):
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
    """Raise what is wrong with the file as ExportDamaged: a wrong checksum before whatever follows from it."""
    where = export.address(file)
    try:
        raw = export.storage.open(file.name)
    except FileMissing as error:
        raise ExportDamaged(where, f"not there any more; {AGAIN}") from error
    with raw:
        source = _Source(raw)
        try:
            yield source
        except (StoreUnavailable, StoreMisconfigured):
            # Storage that fails says nothing of what it holds.
            raise
        except MALFORMED as error:
            _check_md5(source, file, where)
            raise ExportDamaged(where, str(error) if isinstance(error, Unfit) else f"{error}; {AGAIN}") from error
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
